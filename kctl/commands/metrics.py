"""`kctl metrics`."""

from fnmatch import fnmatchcase
from http.client import HTTPException
from pathlib import Path
from typing import Annotated

import typer

from kctl.admin.metrics import metrics_url, read_metrics
from kctl.cli.command_tree import command, lone_command
from kctl.cli.errors import CliError, usage_error
from kctl.cli.options import session_of
from kctl.cli.text_files import read_small_text
from kctl.views.metrics import COLUMNS, series_rows

app = lone_command()


@command(
    app,
    "metrics",
    examples=[
        "kctl metrics 127.0.0.1:9644",
        "kctl metrics 127.0.0.1:9644 '*bytesin*' --non-zero",
        "kctl metrics https://broker1:9644 --token-file token -o json",
    ],
)
def metrics(
    ctx: typer.Context,
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="A broker's admin port, or a URL.")
    ],
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME…", help="Only these metrics; * and ? match.", show_default=False
        ),
    ] = None,
    non_zero: Annotated[bool, typer.Option("--non-zero", help="Leave out zeros.")] = False,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="File with the bearer token."),
    ] = None,
) -> None:
    """Show the metrics of a broker's admin port.

    Reads any endpoint in Prometheus' text format.
    """
    session = session_of(ctx)
    token = _token(token_file)
    try:
        series = read_metrics(metrics_url(address), session.timeout, token)
    except (ValueError, HTTPException) as error:
        raise usage_error(
            f"{address!r} is not an address: {error}", "HOST:PORT, or a URL"
        ) from error
    wanted = [
        one
        for one in series
        if (not patterns or any(fnmatchcase(one.name, pattern) for pattern in patterns))
        and (one.value or not non_zero)
    ]
    if patterns and not wanted and not non_zero:
        raise CliError(
            f"no metric matches {' '.join(patterns)}", f"kctl metrics {address} lists all names"
        )
    session.out.rows(series_rows(wanted), COLUMNS, name="name")


def _token(path: Path | None) -> str | None:
    try:
        return None if path is None else read_small_text(path).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"cannot read {path}: {error}", "check --token-file") from error
