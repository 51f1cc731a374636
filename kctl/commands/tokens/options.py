"""Options of `kctl tokens`."""

import binascii
from base64 import b64decode
from pathlib import Path
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.tokens import list_tokens
from kctl.cli.errors import CliError, ExitStatus, usage
from kctl.cli.security.secrets import read_secret
from kctl.cli.times import parse_duration_ms

TokenId = Annotated[
    str | None, typer.Argument(metavar="TOKEN", help="Token id.", show_default=False)
]
HmacFile = Annotated[
    Path | None,
    typer.Option("--hmac-file", metavar="FILE", help="Read the HMAC of the token from this file."),
]


def parse_period(text: str, option: str) -> int:
    """Parse `7d` or milliseconds; -1 stands for the default of the brokers."""
    digits = text.strip().removeprefix("-")
    if digits.isdecimal():
        return int(text)
    try:
        return usage(parse_duration_ms, text)
    except CliError as error:
        raise CliError(f"{option} {text}: not a duration", "e.g. 1d", ExitStatus.USAGE) from error


async def hmac_of(client: Client, token_id: str | None, file: Path | None) -> bytes:
    """The HMAC in a file, or that of the token with this id."""
    if file is not None:
        try:
            return b64decode(read_secret(file, "--hmac-file"), validate=True)
        except binascii.Error as error:
            raise CliError(
                f"{file} is not an HMAC in base64", "kctl tokens create prints it", ExitStatus.USAGE
            ) from error
    for token in await list_tokens(client):
        if token.token_id == token_id:
            return token.hmac
    raise CliError(f"no such token: {token_id!r}", "kctl tokens list shows the tokens you may use")


def require_token(token_id: str | None, file: Path | None) -> None:
    """A usage error unless exactly one of them is given."""
    if (token_id is None) == (file is None):
        raise CliError(
            "no token specified", "name a token id, or use --hmac-file", ExitStatus.USAGE
        )
