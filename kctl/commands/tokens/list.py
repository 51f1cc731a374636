"""`kctl tokens list` and `create`."""

from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.tokens import create_token, list_tokens
from kctl.cli.arguments.acls import parse_principal
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.options import KafkaText, session_of
from kctl.commands.tokens.options import parse_period
from kctl.views.kafka_text.tokens import creation_text, description_text
from kctl.views.tokens import COLUMNS, CREATED_COLUMNS, token_row


def list_all(
    ctx: typer.Context,
    owners: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            "--owner-principal",
            metavar="PRINCIPAL",
            help="Only tokens of this owner; can be repeated.",
        ),
    ] = None,
    show_hmac: Annotated[
        bool, typer.Option("--show-hmac", help="Print the HMACs too: they are passwords.")
    ] = False,
    text_format: KafkaText = None,
) -> None:
    """List the delegation tokens that this user owns, may renew, or may describe.

    With --format kafka the HMACs are printed, as Kafka's tool does.
    """
    session = session_of(ctx)
    named = [parse_principal(text) for text in owners or ()]
    tokens = ask(session, lambda client: list_tokens(client, named or None))
    if text_format:
        session.out.text(description_text(named, tokens))
        return
    tokens.sort(key=lambda token: (token.owner, token.issue_ms, token.token_id))
    columns = CREATED_COLUMNS if show_hmac else COLUMNS
    rows = [token_row(token, show_hmac=show_hmac) for token in tokens]
    session.out.rows(rows, columns, name="token_id")


def create(
    ctx: typer.Context,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner",
            "--owner-principal",
            metavar="PRINCIPAL",
            help="Create it for this principal; needs CREATE_TOKENS on user:PRINCIPAL.",
        ),
    ] = None,
    renewers: Annotated[
        list[str] | None,
        typer.Option(
            "--renewer",
            "--renewer-principal",
            metavar="PRINCIPAL",
            help="Principal that may renew it, besides its owner; can be repeated.",
        ),
    ] = None,
    max_lifetime: Annotated[
        str,
        typer.Option(
            "--max-lifetime",
            "--max-life-time-period",
            metavar="DURATION",
            help="Longest lifetime, e.g. 7d, or milliseconds; -1: the brokers' limit.",
        ),
    ] = "-1",
    text_format: KafkaText = None,
) -> None:
    """Create a delegation token and print it with its HMAC.

    A client logs in with SCRAM: the token id is the user name, the HMAC the password, and
    tokenauth="true" in sasl.jaas.config.
    """
    session = session_of(ctx)
    refuse_if_read_only(session)
    whose = parse_principal(owner) if owner else None
    named = [parse_principal(text) for text in renewers or ()]
    lifetime_ms = parse_period(max_lifetime, "--max-lifetime")
    token = ask(
        session,
        lambda client: create_token(client, whose, named, lifetime_ms),
        check="kctl tokens list",
    )
    if text_format:
        session.out.text(creation_text(named, lifetime_ms, token))
        return
    session.out.record(token_row(token, show_hmac=True), CREATED_COLUMNS, name="token_id")
