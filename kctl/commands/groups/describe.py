"""`kctl groups list` and `describe`."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.group_source import GroupSource, ask_groups, ask_groups_and_logs
from kctl.cli.arguments.conditions import check_conditions, parse_condition
from kctl.cli.arguments.zookeeper import OldGroupsOption
from kctl.cli.errors import CliError, ExitStatus, usage
from kctl.cli.missing import no_such
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.output import OutputFormat
from kctl.cli.times import now_ms
from kctl.commands.groups.arguments import (
    AllGroups,
    FailIf,
    GroupNames,
    GroupOption,
    GroupState,
    GroupTypes,
    chosen_groups,
    parse_states,
    parse_types,
)
from kctl.model.lag import GroupLag, Verdict
from kctl.operations.group_lag import group_lags
from kctl.plans.lag import by_topic
from kctl.views.groups import (
    LIST_COLUMNS,
    LIST_LAG_COLUMNS,
    MEMBER_COLUMNS,
    OFFSET_COLUMNS,
    STATE_COLUMNS,
    TOPIC_COLUMNS,
    TOTAL_COLUMNS,
    group_tree,
    list_lag_row,
    list_row,
    member_rows,
    offset_row,
    state_row,
    topic_row,
    total_row,
)
from kctl.views.kafka_text.groups import Text, list_text, members_text, offsets_text, state_text
from kctl.views.kafka_text.share_groups import (
    share_members_text,
    share_offsets_text,
    share_state_text,
)
from kctl.views.quantities import plural

MANY_GROUPS = 5
"""With more groups, only their total is printed below the table."""


class View(Enum):
    """Views of a group."""

    OFFSETS = auto()
    MEMBERS = auto()
    STATE = auto()
    TOTALS = auto()
    TOPICS = auto()


def list_consumer_groups(
    ctx: typer.Context,
    states: GroupState = None,
    types: GroupTypes = None,
    lag: Annotated[
        bool,
        typer.Option("--lag", help="Show the lag of each group; queries offsets of all of them."),
    ] = False,
    zookeeper: OldGroupsOption = None,
    text_format: KafkaText = None,
) -> None:
    """List consumer, share and streams groups.

    TYPE is classic, consumer (the protocol of KIP-848), share or streams. With --format kafka only
    consumer groups are listed, as kafka-consumer-groups does.
    """
    session = session_of(ctx)
    wanted, kinds = parse_states(states or []), parse_types(types or [])
    groups = ask_groups(session, zookeeper, lambda groups: groups.listed(wanted), partial=True)
    groups = [group for group in groups if group.type.lower() in kinds or not kinds]
    if text_format:
        consumers = [group for group in groups if group.is_consumer_group]
        session.out.text(list_text(consumers, states=bool(states), types=bool(types)))
        return
    ordered = sorted(groups, key=lambda group: group.group_id)
    if not lag:
        session.out.rows(map(list_row, ordered), LIST_COLUMNS, name="group")
        return
    names = [group.group_id for group in ordered]
    found = ask_groups_and_logs(
        session,
        zookeeper,
        lambda client, groups: group_lags(client, names, source=groups, now_ms=now_ms()),
        partial=True,
    )
    lags = {one.group.group_id: one for one in found}
    rows = [list_lag_row(group, lags.get(group.group_id)) for group in ordered]
    session.out.rows(rows, LIST_LAG_COLUMNS, name="group")


def describe(
    ctx: typer.Context,
    names: GroupNames = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Show offsets and lag (default).")
    ] = False,
    members: Annotated[bool, typer.Option("--members", help="Show members.")] = False,
    state: Annotated[bool, typer.Option("--state", help="Show state and coordinator.")] = False,
    totals: Annotated[bool, typer.Option("--totals", help="Show one line per group.")] = False,
    topics: Annotated[
        bool, typer.Option("--by-topic", help="Show one line per group and topic.")
    ] = False,
    time_lag: Annotated[
        bool, typer.Option(help="Determine the age of the first unread records.")
    ] = True,
    only_lagging: Annotated[
        bool, typer.Option("--only-lagging", help="Omit partitions without lag or problems.")
    ] = False,
    fail_if: FailIf = None,
    zookeeper: OldGroupsOption = None,
    text_format: KafkaText = None,
) -> None:
    """Describe groups: committed offsets, lag and members.

    TIME-LAG is the age of the first unread record. VERDICT is one of:

      ok          nothing is unread, or the first unread record is at most 10 s old
      lagging     the first unread record is older
      unread      there are unread records, and no member is assigned
      no-offset   no offset is committed
      lost        records were deleted before they were read
      beyond-end  the committed offset is after the log end
      unknown     the leader did not answer

    -o tree shows the partitions below their members. Groups of the new protocols (KIP-848, share
    groups) have epochs; the CURRENT offset of a share group is its start offset, the first one
    that may still be delivered.
    """
    session = session_of(ctx)
    conditions = [usage(parse_condition, text) for text in fail_if or []]
    wanted = [*(names or []), *(group_option or [])]
    asked = {View.OFFSETS: offsets, View.MEMBERS: members, View.STATE: state}
    view = _view(asked | {View.TOTALS: totals, View.TOPICS: topics})
    now = now_ms() if time_lag and not text_format else None

    async def find(client: Client, groups: GroupSource) -> list[GroupLag]:
        chosen = await chosen_groups(
            groups, wanted, all_groups=all_groups, share_groups=not text_format
        )
        is_tree = session.output is OutputFormat.TREE
        if view not in (View.MEMBERS, View.STATE) or conditions or is_tree:
            return await group_lags(client, chosen, source=groups, now_ms=now)
        return [GroupLag(group, ()) for group in await groups.described(chosen)]

    found = ask_groups_and_logs(session, zookeeper, find, partial=True)
    if text_format:
        _show_kafka(session, found, view)
    else:
        _show(session, [one for one in found if one.group.exists], view, only_lagging)
    _check_missing(session, zookeeper, found)
    check_conditions(found, conditions)


def _view(asked: Mapping[View, bool]) -> View:
    chosen = [view for view, is_asked in asked.items() if is_asked]
    if len(chosen) > 1:
        raise CliError(
            "more than one view selected",
            "use only one of --offsets, --members, --state, --totals and --by-topic",
            ExitStatus.USAGE,
        )
    return chosen[0] if chosen else View.OFFSETS


def _show_kafka(session: Session, found: Sequence[GroupLag], view: View) -> None:
    for one in found:
        text = _kafka_text(one, view, verbose=bool(session.verbose))
        if text.note:
            session.out.note(text.note.removesuffix("\n"))
        session.out.text(text.text)


def _kafka_text(one: GroupLag, view: View, *, verbose: bool) -> Text:
    if one.group.is_share_group:
        return _share_text(one, view, verbose=verbose)
    if view is View.MEMBERS:
        return members_text(one.group, verbose=verbose)
    if view is View.STATE:
        return state_text(one.group)
    return offsets_text(one)


def _share_text(one: GroupLag, view: View, *, verbose: bool) -> Text:
    if view is View.MEMBERS:
        return share_members_text(one.group, verbose=verbose)
    if view is View.STATE:
        return share_state_text(one.group, verbose=verbose)
    return share_offsets_text(one, verbose=verbose)


def _show(session: Session, found: Sequence[GroupLag], view: View, only_lagging: bool) -> None:
    if session.output is OutputFormat.TREE:
        for one in found:
            session.out.tree(group_tree(one))
    elif view is View.MEMBERS:
        rows = [row for one in found for row in member_rows(one.group)]
        session.out.rows(rows, MEMBER_COLUMNS, name="member_id")
    elif view is View.STATE:
        session.out.rows([state_row(one.group) for one in found], STATE_COLUMNS, name="group")
    elif view is View.TOTALS:
        session.out.rows([total_row(one) for one in found], TOTAL_COLUMNS, name="group")
    elif view is View.TOPICS:
        rows = [topic_row(topic) for one in found for topic in by_topic(one)]
        session.out.rows(rows, TOPIC_COLUMNS, name="topic")
    else:
        lags = [lag for one in found for lag in one.partitions]
        chosen = [
            lag for lag in lags if not only_lagging or lag.lag or lag.verdict is not Verdict.OK
        ]
        session.out.rows(map(offset_row, chosen), OFFSET_COLUMNS, name="group")
        if session.output.is_for_people:
            _sum_up(session, found)


def _sum_up(session: Session, found: Sequence[GroupLag]) -> None:
    """Print totals below the table."""
    if len(found) <= MANY_GROUPS:
        for one in found:
            session.out.note(_sentence(one))
    else:
        total = sum(one.total_lag for one in found)
        session.out.note(
            f"{len(found)} groups, total lag {total}; use --totals for one line per group"
        )


def _sentence(one: GroupLag) -> str:
    members = len(one.group.members)
    return (
        f"{one.group.group_id}: {one.group.state}, {plural(members, 'member')}, "
        f"lag {one.total_lag} in {plural(len(one.partitions), 'partition')}"
    )


def _check_missing(session: Session, zookeeper: str | None, found: Sequence[GroupLag]) -> None:
    missing = [one.group.group_id for one in found if not one.group.exists]
    if missing:
        there = ask_groups(session, zookeeper, lambda groups: groups.listed(), partial=True)
        raise no_such("group", missing, [group.group_id for group in there])
