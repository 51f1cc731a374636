"""`kctl monitor history`."""

import time
from typing import Annotated

import typer

from kctl.cli.errors import usage
from kctl.cli.missing import no_such
from kctl.cli.options import session_of
from kctl.cli.times import parse_duration_ms
from kctl.commands.monitor.options import History, default_history
from kctl.operations.monitoring.history import known_groups, read_samples
from kctl.views.monitor_history import SAMPLE_COLUMNS, SUMMARY_COLUMNS, sample_rows, summary_rows


def history(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group.")],
    since: Annotated[
        str, typer.Option("--since", metavar="DURATION", help="How far to look back, e.g. 2h.")
    ] = "1h",
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic.")
    ] = None,
    samples: Annotated[
        bool, typer.Option("--samples", help="Print every sample instead of a summary per topic.")
    ] = False,
    history: History = None,
) -> None:
    """Show how the lag of a group developed, from the history of `kctl monitor run`.

    Needs no cluster.
    """
    out = session_of(ctx).out
    path = history or default_history()
    since_s = time.time() - usage(parse_duration_ms, since) / 1000
    found = read_samples(path, group, since_s, topic)
    if not found and group not in (known := known_groups(path)):
        raise no_such("group", [group], known)
    if samples:
        out.rows(sample_rows(found), SAMPLE_COLUMNS, name="topic")
    else:
        out.rows(summary_rows(found), SUMMARY_COLUMNS, name="topic")
