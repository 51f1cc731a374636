"""`kctl groups list` and `describe`."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.group_lag import group_lags
from kctl.admin.group_source import GroupSource, ask_groups, ask_groups_and_logs
from kctl.admin.groups import Group
from kctl.commands.group_words import AllGroups, GroupNames, GroupOption, chosen_groups
from kctl.errors import CliError, ExitStatus
from kctl.kafka_text.groups import Text, list_text, members_text, offsets_text, state_text
from kctl.options import KafkaText, Session, session_of
from kctl.output import OutputFormat
from kctl.plans.conditions import Condition, parse_condition
from kctl.plans.lag import GroupLag, PartitionLag, Verdict
from kctl.records.times import format_duration
from kctl.streaming.choices import now_ms, usage
from kctl.tables import Column
from kctl.words.missing import no_such
from kctl.words.zookeeper import OldGroupsOption

LIST_COLUMNS = [
    Column("group"),
    Column("state"),
    Column("type"),
    Column("protocol_type", wide=True),
]
OFFSET_COLUMNS = [
    Column("group"),
    Column("topic"),
    Column("partition", right=True),
    Column("current_offset", "CURRENT", right=True),
    Column("log_start_offset", "LOG-START", right=True, wide=True),
    Column("log_end_offset", "LOG-END", right=True),
    Column("lag", right=True),
    Column("time_lag", right=True),
    Column("verdict"),
    Column("client_id"),
    Column("host", wide=True),
    Column("member_id", wide=True),
]
MEMBER_COLUMNS = [
    Column("group"),
    Column("client_id"),
    Column("host"),
    Column("partitions", right=True),
    Column("member_id"),
    Column("group_instance_id", "INSTANCE-ID"),
    Column("assignment"),
]
STATE_COLUMNS = [
    Column("group"),
    Column("state"),
    Column("members", right=True),
    Column("assignor"),
    Column("coordinator"),
    Column("coordinator_id", wide=True),
]
TOTAL_COLUMNS = [
    Column("group"),
    Column("state"),
    Column("members", right=True),
    Column("partitions", right=True),
    Column("total_lag", right=True),
    Column("max_lag", right=True),
    Column("max_time_lag", right=True),
    Column("verdicts"),
]
MANY_GROUPS = 5
"""More than these are summed up in one sentence."""


class View(Enum):
    """Which side of a group is shown."""

    OFFSETS = auto()
    MEMBERS = auto()
    STATE = auto()
    TOTALS = auto()


def list_consumer_groups(
    ctx: typer.Context,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only groups in this state; can be given again."),
    ] = None,
    zookeeper: OldGroupsOption = None,
    text_format: KafkaText = None,
) -> None:
    """List the consumer groups."""
    session = session_of(ctx)
    groups = ask_groups(session, zookeeper, lambda groups: groups.listed(states or []))
    if text_format:
        session.out.text(list_text(groups, states=bool(states), types=False))
        return
    rows = [
        {
            "group": group.group_id,
            "state": group.state,
            "type": group.type,
            "protocol_type": group.protocol_type,
        }
        for group in sorted(groups, key=lambda group: group.group_id)
    ]
    session.out.rows(rows, LIST_COLUMNS, name="group")


def describe(
    ctx: typer.Context,
    names: GroupNames = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Offsets and lag; what is shown anyway.")
    ] = False,
    members: Annotated[bool, typer.Option("--members", help="Who is in the groups.")] = False,
    state: Annotated[bool, typer.Option("--state", help="State and coordinator.")] = False,
    totals: Annotated[bool, typer.Option("--totals", help="One line per group.")] = False,
    time_lag: Annotated[
        bool, typer.Option(help="Whether to look how long unread records have been waiting.")
    ] = True,
    only_lagging: Annotated[
        bool, typer.Option("--only-lagging", help="Leave out partitions that are well.")
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="End with status 3 if a group has e.g. lag>1000 (of a partition), total-lag>1, "
            "time-lag>5m or members<1.",
        ),
    ] = None,
    zookeeper: OldGroupsOption = None,
    text_format: KafkaText = None,
) -> None:
    """Show how far groups have read, how far they are behind, and who is in them.

    TIME-LAG is how long the first record that was not read has been waiting. VERDICT: ok; lagging;
    unread (and no member to read it); no-offset (nothing committed); lost (deleted before it was
    read); beyond-end.
    """
    session = session_of(ctx)
    conditions = [usage(parse_condition, text) for text in fail_if or []]
    wanted = [*(names or []), *(group_option or [])]
    view = _view(offsets=offsets, members=members, state=state, totals=totals)
    now = now_ms() if time_lag and not text_format else None

    async def find(client: Client, groups: GroupSource) -> list[GroupLag]:
        chosen = await chosen_groups(groups, wanted, all_groups=all_groups)
        if view in (View.OFFSETS, View.TOTALS) or conditions:
            return await group_lags(client, chosen, source=groups, now_ms=now)
        return [GroupLag(group, ()) for group in await groups.described(chosen)]

    found = ask_groups_and_logs(session, zookeeper, find)
    if text_format:
        _show_kafka(session, found, view)
    else:
        _show(session, [one for one in found if one.group.exists], view, only_lagging)
    _check_missing(session, zookeeper, found)
    _check_conditions(found, conditions)


def _view(*, offsets: bool, members: bool, state: bool, totals: bool) -> View:
    if offsets + members + state + totals > 1:
        raise CliError(
            "one view at a time", "--offsets, --members, --state or --totals", ExitStatus.USAGE
        )
    asked = {View.MEMBERS: members, View.STATE: state, View.TOTALS: totals}
    return next((view for view, is_asked in asked.items() if is_asked), View.OFFSETS)


def _show_kafka(session: Session, found: Sequence[GroupLag], view: View) -> None:
    for one in found:
        text = _kafka_text(one, view, verbose=bool(session.verbose))
        if text.note:
            session.out.note(text.note.removesuffix("\n"))
        session.out.text(text.text)


def _kafka_text(one: GroupLag, view: View, *, verbose: bool) -> Text:
    if view is View.MEMBERS:
        return members_text(one.group, verbose=verbose)
    if view is View.STATE:
        return state_text(one.group)
    return offsets_text(one)


def _show(session: Session, found: Sequence[GroupLag], view: View, only_lagging: bool) -> None:
    if view is View.MEMBERS:
        rows = [row for one in found for row in member_rows(one.group)]
        session.out.rows(rows, MEMBER_COLUMNS, name="member_id")
    elif view is View.STATE:
        session.out.rows([state_row(one.group) for one in found], STATE_COLUMNS, name="group")
    elif view is View.TOTALS:
        session.out.rows([total_row(one) for one in found], TOTAL_COLUMNS, name="group")
    else:
        lags = [lag for one in found for lag in one.partitions]
        chosen = [lag for lag in lags if not (only_lagging and lag.verdict is Verdict.OK)]
        session.out.rows(map(offset_row, chosen), OFFSET_COLUMNS, name="topic")
        if session.output in (OutputFormat.TABLE, OutputFormat.WIDE):
            _sum_up(session, found)


def _sum_up(session: Session, found: Sequence[GroupLag]) -> None:
    """What people want to know at the end of a table: the totals."""
    if len(found) <= MANY_GROUPS:
        for one in found:
            session.out.note(_sentence(one))
    else:
        total = sum(one.total_lag for one in found)
        session.out.note(f"{len(found)} groups, lag {total} in all; --totals has a line for each")


def _sentence(one: GroupLag) -> str:
    members = len(one.group.members)
    return (
        f"{one.group.group_id}: {one.group.state}, {members} member{'s' * (members != 1)}, "
        f"lag {one.total_lag} in {len(one.partitions)} partitions"
    )


def offset_row(lag: PartitionLag) -> dict[str, object]:
    """One partition of one group."""
    member = lag.member
    return {
        "group": lag.group_id,
        "topic": lag.place.topic,
        "partition": lag.place.partition,
        "current_offset": lag.current_offset,
        "log_start_offset": lag.log_start_offset,
        "log_end_offset": lag.log_end_offset,
        "lag": lag.lag,
        "time_lag": _duration(lag.time_lag_ms),
        "time_lag_ms": lag.time_lag_ms,
        "verdict": lag.verdict,
        "client_id": member.client_id if member else None,
        "host": member.host if member else None,
        "member_id": member.member_id if member else None,
    }


def _duration(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_duration(milliseconds)


def member_rows(group: Group) -> list[dict[str, object]]:
    """A row per member."""
    return [
        {
            "group": group.group_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": len(member.assignment),
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "assignment": [str(place) for place in sorted(member.assignment)],
        }
        for member in group.members
    ]


def state_row(group: Group) -> dict[str, object]:
    """The group as such."""
    return {
        "group": group.group_id,
        "state": group.state,
        "members": len(group.members),
        "assignor": group.assignor,
        "coordinator": str(group.coordinator) if group.has_coordinator else None,
        "coordinator_id": group.coordinator.id if group.has_coordinator else None,
    }


def total_row(one: GroupLag) -> dict[str, object]:
    """Sums over the partitions of one group."""
    return {
        "group": one.group.group_id,
        "state": one.group.state,
        "members": len(one.group.members),
        "partitions": len(one.partitions),
        "total_lag": one.total_lag,
        "max_lag": one.max_lag,
        "max_time_lag": _duration(one.max_time_lag_ms),
        "max_time_lag_ms": one.max_time_lag_ms,
        "verdicts": sorted({lag.verdict.value for lag in one.partitions}),
    }


def _check_missing(session: Session, zookeeper: str | None, found: Sequence[GroupLag]) -> None:
    missing = [one.group.group_id for one in found if not one.group.exists]
    if missing:
        there = ask_groups(session, zookeeper, lambda groups: groups.listed())
        raise no_such("group", missing, [group.group_id for group in there])


def _check_conditions(found: Sequence[GroupLag], conditions: Sequence[Condition]) -> None:
    findings = [
        f"{one.group.group_id}: {condition.text}"
        for one in found
        for condition in conditions
        if condition.holds(one)
    ]
    if findings:
        raise CliError("; ".join(findings), status=ExitStatus.FOUND)
