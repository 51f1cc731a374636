"""New passwords of users: from a file, a variable or a prompt, never from the command line."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.security.secrets import ask_secret, read_secret

PasswordFile = Annotated[
    str | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="Read the password from this file; - for stdin. Default: a prompt.",
    ),
]
PasswordVariable = Annotated[
    str | None,
    typer.Option(
        "--password-env", metavar="VARIABLE", help="Read it from this environment variable."
    ),
]


def new_password(user: str, file: str | None, variable: str | None) -> str:
    """The password, prompted for twice if neither a file nor a variable is given."""
    if file and variable:
        raise _usage("--password-file and --password-env cannot be combined", "use one of them")
    if variable:
        password = os.environ.get(variable)
        if password is None:
            raise _usage(f"the variable {variable} is not set", "export it, or use --password-file")
    elif file == "-":
        password = sys.stdin.readline().rstrip("\r\n")
    elif file:
        password = read_secret(Path(file), "--password-file")
    else:
        password = _prompted(user)
    if not password:
        raise _usage(f"the password of {user} is empty", "nothing was changed")
    return password


def _prompted(user: str) -> str:
    password = ask_secret(f"New password of {user}")
    if password is None:
        raise _usage(
            f"the password of {user} is missing",
            "use --password-file or --password-env, or run it on a terminal",
        )
    if ask_secret("Again") != password:
        raise CliError("the passwords differ: nothing was changed", "try again")
    return password


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
