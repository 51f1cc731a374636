"""`kctl groups watch`."""

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_source import CoordinatedGroups
from kctl.cli.arguments.conditions import check_conditions, parse_condition
from kctl.cli.errors import ExitStatus, usage
from kctl.cli.missing import no_such
from kctl.cli.options import Session, session_of
from kctl.cli.output import Output
from kctl.cli.tables import Columns
from kctl.cli.times import now_ms
from kctl.commands.groups.arguments import (
    AllGroups,
    FailIf,
    GroupNames,
    GroupOption,
    chosen_groups,
)
from kctl.model.lag import GroupLag, Movement, PartitionLag, Verdict
from kctl.operations.group_lag import group_lags
from kctl.plans.trend import DEFAULT_WINDOW_S, Key, LagHistory
from kctl.views.groups import TOTAL_COLUMNS, WATCH_COLUMNS, sparks, total_row, watch_row

_OTHER_LINES = 3
"""Lines of the screen that are no rows: the heading, the note about hidden rows, the cursor."""


class Sort(StrEnum):
    """Order of the partitions."""

    NAME = "name"
    LAG = "lag"
    TIME_LAG = "time-lag"


def watch(
    ctx: typer.Context,
    names: GroupNames = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    interval: Annotated[
        float,
        typer.Option(
            "-i", "--interval", metavar="SECONDS", min=0.05, max=86_400, help="Refresh interval."
        ),
    ] = 2.0,
    window: Annotated[
        float,
        typer.Option(
            "-w",
            "--window",
            metavar="SECONDS",
            min=0.1,
            help="Window for trend and verdict; at least three commit intervals.",
        ),
    ] = DEFAULT_WINDOW_S,
    count: Annotated[
        int | None, typer.Option("-n", "--count", min=1, help="Exit after N updates.")
    ] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option("-t", "--topic", help="Only partitions of this topic; can be repeated."),
    ] = None,
    only_lagging: Annotated[
        bool, typer.Option("--only-lagging", help="Omit partitions and groups whose verdict is ok.")
    ] = False,
    sort: Annotated[
        Sort, typer.Option("--sort", metavar="BY", help="Order: name, lag or time-lag.")
    ] = Sort.NAME,
    totals: Annotated[bool, typer.Option("--totals", help="Show one line per group.")] = False,
    fail_if: FailIf = None,
) -> None:
    """Watch the lag of groups until Ctrl-C; on a terminal, as many rows as fit.

    With --count, the conditions of --fail-if are checked at the last update, with the verdicts over
    the window: `kctl groups watch billing -n 15 --fail-if verdict=stalled` is suitable for paging.

    Rates, trend and verdict are computed over --window, which must span several commits: consumers
    commit every 5 s by default. The trend compares the lags after commits:

      caught-up  nothing is unread
      falling    the lag decreases
      steady     it changes by less than what is written in one interval
      growing    the lag increases
      stalled    records are unread, and no commit advanced for half the window
      rewound    the offsets were reset
      -          there are too few commits yet

    Alert on the verdicts lagging and stalled. Burrow's statuses are in brackets:

      ok         the member keeps up: its first unread record is at most 10 s old,
                 or it has read everything from before the window [OK]
      lagging    it is further behind, whether or not the lag grows [WARN]
      stalled    it commits no progress [STALL, STOP]
      unread     there are unread records, and no member is assigned

    no-offset, lost, beyond-end and unknown are as in `kctl groups describe`.
    """
    session = session_of(ctx)
    conditions = [usage(parse_condition, text) for text in fail_if or []]
    wanted = [*(names or []), *(group_option or [])]
    choice = Choice(frozenset(topics or ()), only_lagging, sort)

    async def find(client: Client) -> list[GroupLag]:
        chosen = await chosen_groups(CoordinatedGroups(client), wanted, all_groups=all_groups)
        return await group_lags(client, chosen, now_ms=now_ms())

    history = LagHistory(window)
    looks = 0
    try:
        while True:
            found = ask(session, find, partial=True)
            if not looks:
                _check_missing(session, found)
            lags = [lag for one in found for lag in one.partitions]
            moved = dict(zip(map(_key, lags), history.add(time.monotonic(), lags), strict=True))
            if totals:
                rows = [total_row(one, moved) for one in choice.groups_of(found, moved)]
                _show(session.out, rows, TOTAL_COLUMNS)
            else:
                chosen = choice.of(lags, moved)
                rows = [watch_row(lag, moved[_key(lag)]) for lag in chosen]
                if session.out.is_on_terminal:
                    rows = [
                        row | sparks(history.lags(lag), history.rates(lag))
                        for row, lag in zip(rows, chosen, strict=True)
                    ]
                _show(session.out, rows, WATCH_COLUMNS)
            looks += 1
            if looks == count:
                break
            time.sleep(interval)
    except KeyboardInterrupt:
        raise typer.Exit(ExitStatus.INTERRUPTED) from None
    check_conditions(found, conditions, lambda lag: moved[_key(lag)].verdict)


def _key(lag: PartitionLag) -> Key:
    return lag.group_id, lag.place


@dataclass(frozen=True)
class Choice:
    """Which partitions or groups are shown, and in which order."""

    topics: frozenset[str]
    only_lagging: bool
    sort: Sort

    def of(self, lags: Sequence[PartitionLag], moved: Mapping[Key, Movement]) -> list[PartitionLag]:
        """The chosen ones of `lags`; with the largest first if they are sorted by lag."""
        chosen = [lag for lag in self._of_topics(lags) if self._is_wanted(lag, moved)]
        if self.sort is Sort.LAG:
            return sorted(chosen, key=lambda lag: -(lag.lag or 0))
        if self.sort is Sort.TIME_LAG:
            return sorted(chosen, key=lambda lag: -(lag.time_lag_ms or 0))
        return chosen

    def groups_of(
        self, groups: Sequence[GroupLag], moved: Mapping[Key, Movement]
    ) -> list[GroupLag]:
        """The groups with a chosen partition, with all their partitions of the chosen topics."""
        of_topics = [
            replace(one, partitions=tuple(self._of_topics(one.partitions))) for one in groups
        ]
        is_filtered = bool(self.topics) or self.only_lagging
        chosen = [
            one
            for one in of_topics
            if not is_filtered or any(self._is_wanted(lag, moved) for lag in one.partitions)
        ]
        if self.sort is Sort.LAG:
            return sorted(chosen, key=lambda one: -one.total_lag)
        if self.sort is Sort.TIME_LAG:
            return sorted(chosen, key=lambda one: -(one.max_time_lag_ms or 0))
        return chosen

    def _of_topics(self, lags: Sequence[PartitionLag]) -> list[PartitionLag]:
        return [lag for lag in lags if not self.topics or lag.place.topic in self.topics]

    def _is_wanted(self, lag: PartitionLag, moved: Mapping[Key, Movement]) -> bool:
        return not (self.only_lagging and moved[_key(lag)].verdict is Verdict.OK)


def _check_missing(session: Session, found: Sequence[GroupLag]) -> None:
    """CliError if a group does not exist when the watch begins."""
    if missing := [one.group.group_id for one in found if not one.group.exists]:
        there = ask(session, lambda client: CoordinatedGroups(client).listed(), partial=True)
        raise no_such("group", missing, [group.group_id for group in there])


def _show(out: Output, rows: Sequence[dict[str, object]], columns: Columns) -> None:
    is_screen = out.format.is_for_people and sys.stdout.isatty()
    fitting = max(1, shutil.get_terminal_size().lines - _OTHER_LINES)
    if not is_screen or len(rows) <= fitting:
        fitting = len(rows)
    if is_screen:
        out.clear_screen()
    ordered = out.options.sorted(columns, rows)  # before the last ones are left out
    out.rows(ordered[:fitting], columns, name="group")
    if hidden := len(rows) - fitting:
        out.note(f"… {hidden} more; --sort lag, --only-lagging, --topic and --totals show less")
    sys.stdout.flush()  # output must not be delayed
