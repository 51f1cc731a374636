"""`kctl groups watch`."""

import sys
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_source import CoordinatedGroups
from kctl.cli.errors import ExitStatus
from kctl.cli.options import session_of
from kctl.cli.output import Output
from kctl.cli.times import now_ms
from kctl.commands.groups.arguments import AllGroups, GroupNames, GroupOption, chosen_groups
from kctl.model.lag import GroupLag
from kctl.operations.group_lag import group_lags
from kctl.plans.trend import DEFAULT_WINDOW_S, LagHistory
from kctl.views.groups import WATCH_COLUMNS, sparks, watch_row


def watch(
    ctx: typer.Context,
    names: GroupNames = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    interval: Annotated[
        float,
        typer.Option("-i", "--interval", metavar="SECONDS", min=0.05, help="Refresh interval."),
    ] = 2.0,
    window: Annotated[
        float,
        typer.Option(
            "-w",
            "--window",
            metavar="SECONDS",
            min=0.1,
            help="Time over which trend and verdict are taken; at least three commit intervals.",
        ),
    ] = DEFAULT_WINDOW_S,
    count: Annotated[
        int | None, typer.Option("-n", "--count", min=1, help="Exit after N updates.")
    ] = None,
) -> None:
    """Watch the lag of groups until Ctrl-C.

    Rates, trend and verdict are taken over --window, which must span several commits: consumers
    commit every 5 s by default. The trend compares the lags after commits: caught-up, falling,
    steady, growing, stalled (unread records, and no commit advances for half the window), rewound
    (offsets were reset); - while there are too few commits. Changes of less than what is written
    in one interval count as steady.

    The verdict is ok (Burrow's OK) if the member keeps up: its first unread record is at most 10 s
    old, or it has read everything from before the window and does not fall behind; lagging
    (Burrow's WARN, but also if the lag is large and steady); stalled (Burrow's STALL and STOP,
    which differ only in commits that repeat an offset); unread (no member is assigned), no-offset,
    lost (records were deleted unread), beyond-end, unknown. lagging and stalled are worth an alert.
    """
    session = session_of(ctx)
    wanted = [*(names or []), *(group_option or [])]

    async def find(client: Client) -> list[GroupLag]:
        chosen = await chosen_groups(CoordinatedGroups(client), wanted, all_groups=all_groups)
        return await group_lags(client, chosen, now_ms=now_ms())

    history = LagHistory(window)
    looks = 0
    try:
        while True:
            found = ask(session, find, partial=True)
            lags = [lag for one in found for lag in one.partitions]
            rows = list(map(watch_row, lags, history.add(time.monotonic(), lags)))
            if session.out.is_on_terminal:
                rows = [
                    row | sparks(history.lags(lag), history.rates(lag))
                    for row, lag in zip(rows, lags, strict=True)
                ]
            _show(session.out, rows)
            looks += 1
            if looks == count:
                return
            time.sleep(interval)
    except KeyboardInterrupt:
        raise typer.Exit(ExitStatus.INTERRUPTED) from None


def _show(out: Output, rows: Sequence[dict[str, object]]) -> None:
    if out.format.is_for_people and sys.stdout.isatty():
        out.clear_screen()
    out.rows(rows, WATCH_COLUMNS, name="group")
    sys.stdout.flush()  # output must not be delayed
