"""`kctl groups watch`: look again and again."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_lag import group_lags
from kctl.admin.group_source import CoordinatedGroups
from kctl.commands.group_show import offset_row
from kctl.commands.group_words import AllGroups, GroupNames, GroupOption, chosen_groups
from kctl.errors import ExitStatus
from kctl.options import session_of
from kctl.output import Output, OutputFormat
from kctl.plans.lag import GroupLag, PartitionLag
from kctl.plans.trend import Movement, movement
from kctl.records.times import format_duration
from kctl.streaming.choices import now_ms
from kctl.tables import Column

COLUMNS = [
    Column("group"),
    Column("topic"),
    Column("partition", right=True),
    Column("lag", right=True),
    Column("time_lag", right=True),
    Column("produced_per_s", "PRODUCED/S", right=True),
    Column("consumed_per_s", "CONSUMED/S", right=True),
    Column("caught_up_in", right=True),
    Column("trend"),
    Column("verdict"),
    Column("client_id", wide=True),
]
_CLEAR = "\x1b[H\x1b[2J"

Key = tuple[str, TopicPartition]
Look = Mapping[Key, PartitionLag]


def watch(
    ctx: typer.Context,
    names: GroupNames = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    interval: Annotated[
        float, typer.Option("-i", "--interval", metavar="SECONDS", min=0.05, help="How often.")
    ] = 2.0,
    count: Annotated[
        int | None, typer.Option("-n", "--count", min=1, help="Stop after so many looks.")
    ] = None,
) -> None:
    """Look at the lag of groups again and again, until Ctrl-C.

    From the second look on with rates, and with the trend: caught-up, falling, steady, growing,
    stalled (there is something to read, and nothing is read), rewound.
    """
    session = session_of(ctx)
    wanted = [*(names or []), *(group_option or [])]

    async def find(client: Client) -> list[GroupLag]:
        chosen = await chosen_groups(CoordinatedGroups(client), wanted, all_groups=all_groups)
        return await group_lags(client, chosen, now_ms=now_ms())

    before: Look = {}
    before_s = time.monotonic()
    looks = 0
    try:
        while True:
            look = _by_key(ask(session, find))
            now_s = time.monotonic()
            _show(session.out, _rows(before, look, now_s - before_s))
            before, before_s, looks = look, now_s, looks + 1
            if looks == count:
                return
            time.sleep(interval)
    except KeyboardInterrupt:
        raise typer.Exit(ExitStatus.INTERRUPTED) from None


def _by_key(found: Sequence[GroupLag]) -> dict[Key, PartitionLag]:
    return {(lag.group_id, lag.place): lag for one in found for lag in one.partitions}


def _rows(before: Look, now: Look, seconds: float) -> list[dict[str, object]]:
    return [_row(lag, movement(before.get(key), lag, seconds)) for key, lag in now.items()]


def _row(lag: PartitionLag, moved: Movement) -> dict[str, object]:
    eta = moved.caught_up_in_s
    return offset_row(lag) | {
        "produced_per_s": _rate(moved.produced_per_s),
        "consumed_per_s": _rate(moved.consumed_per_s),
        "caught_up_in": None if eta is None else format_duration(round(eta * 1000)),
        "trend": moved.trend,
    }


def _rate(per_second: float | None) -> float | None:
    return None if per_second is None else round(per_second, 1)


def _show(out: Output, rows: Sequence[dict[str, object]]) -> None:
    if out.format in (OutputFormat.TABLE, OutputFormat.WIDE) and sys.stdout.isatty():
        out.text(_CLEAR)
    out.rows(rows, COLUMNS, name="topic")
    sys.stdout.flush()  # a look is of no use later
