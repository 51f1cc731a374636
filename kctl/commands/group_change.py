"""`kctl groups delete`, `delete-offsets` and `remove-members`."""

from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_changes import remove_members
from kctl.admin.group_offsets import committed_offsets, delete_offsets
from kctl.admin.group_source import GroupSource, ask_groups
from kctl.admin.groups import Group, Member, describe_groups
from kctl.commands.group_show import MEMBER_COLUMNS, STATE_COLUMNS, member_rows, state_row
from kctl.commands.group_words import (
    AllGroups,
    GroupName,
    GroupNames,
    GroupOption,
    Topics,
    chosen_groups,
    chosen_partitions,
)
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.kafka_text.groups import delete_offsets_text, delete_text
from kctl.options import KafkaText, session_of
from kctl.outcomes import Outcome, show_outcomes
from kctl.tables import Column
from kctl.words.zookeeper import OldGroupsOption

OFFSET_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("current_offset", "CURRENT", right=True),
]


def delete(
    ctx: typer.Context,
    names: GroupNames = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    zookeeper: OldGroupsOption = None,
    text_format: KafkaText = None,
) -> None:
    """Delete groups with all their offsets; they must have no members."""
    session = session_of(ctx)
    wanted = [*(names or []), *(group_option or [])]

    async def find(source: GroupSource) -> list[Group]:
        return await source.described(await chosen_groups(source, wanted, all_groups=all_groups))

    groups = ask_groups(session, zookeeper, find)
    plan = Plan(
        f"Delete {len(groups)} groups?",
        [state_row(group) for group in groups],
        STATE_COLUMNS,
        "group",
    )
    if not agreed(session, plan, yes=yes, dry_run=dry_run):
        return
    ids = [group.group_id for group in groups]
    outcomes = ask_groups(session, zookeeper, lambda source: source.deleted(ids))
    if text_format:
        failed = {one.name: one.error for one in outcomes if one.error}
        deleted = [one.name for one in outcomes if not one.error]
        session.out.text(delete_text(failed, deleted))
    else:
        show_outcomes(session.out, outcomes, "group", "deleted")
    if any(one.error for one in outcomes):
        raise typer.Exit(ExitStatus.FAILED)


def delete_group_offsets(
    ctx: typer.Context,
    group: GroupName,
    topics: Topics = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
) -> None:
    """Forget what a group has committed for topics that it no longer reads."""
    session = session_of(ctx)
    if not topics:
        raise CliError("no topic named", "--topic orders, or --topic orders:0,1", ExitStatus.USAGE)

    async def find(client: Client) -> dict[TopicPartition, int | None]:
        places = await chosen_partitions(client, topics)
        offsets = (await committed_offsets(client, [group]))[group]
        return {place: offsets.get(place) for place in places}

    found = ask(session, find)
    rows = [
        {"topic": place.topic, "partition": place.partition, "current_offset": offset}
        for place, offset in found.items()
    ]
    plan = Plan(f"Delete {len(rows)} offsets of {group}?", rows, OFFSET_COLUMNS, "topic")
    if not agreed(session, plan, yes=yes, dry_run=dry_run):
        return
    error, outcomes = ask(session, lambda client: delete_offsets(client, group, found))
    if error:
        outcomes = dict.fromkeys(found, error)
    if text_format:
        session.out.text(delete_offsets_text(group, topics, error, outcomes))
        if any(outcomes.values()):
            raise typer.Exit(ExitStatus.FAILED)
        return
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        raise CliError(f"no such group: {group!r}", "kctl groups list shows those there are")
    done = [Outcome(str(place), outcomes[place]) for place in sorted(outcomes)]
    show_outcomes(session.out, done, "partition", "deleted")


def remove_group_members(
    ctx: typer.Context,
    group: GroupName,
    members: Annotated[
        list[str] | None,
        typer.Option("--member", help="A member's id; can be given again."),
    ] = None,
    instances: Annotated[
        list[str] | None,
        typer.Option("--instance", help="A static member's instance id; can be given again."),
    ] = None,
    all_members: Annotated[bool, typer.Option("--all", help="All members.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Send members out of a group, e.g. static ones that will not come back.

    A consumer that is alive notices and joins again.
    """
    session = session_of(ctx)
    (found,) = ask(session, lambda client: describe_groups(client, [group]))
    chosen = _chosen(found, members or [], instances or [], all_members=all_members)
    ids = {member.member_id for member in chosen}
    rows = [row for row in member_rows(found) if row["member_id"] in ids]
    plan = Plan(f"Remove {len(rows)} members of {group}?", rows, MEMBER_COLUMNS, "member_id")
    if not agreed(session, plan, yes=yes, dry_run=dry_run):
        return
    outcomes = ask(session, lambda client: remove_members(client, group, chosen))
    show_outcomes(session.out, outcomes, "member", "removed")


def _chosen(
    group: Group, members: list[str], instances: list[str], *, all_members: bool
) -> list[Member]:
    if not (members or instances or all_members):
        raise CliError("no member named", "--member, --instance or --all", ExitStatus.USAGE)
    if not group.exists:
        raise CliError(
            f"no such group: {group.group_id!r}", "kctl groups list shows those there are"
        )
    known = {member.member_id for member in group.members}
    known |= {member.group_instance_id or "" for member in group.members}
    missing = [name for name in [*members, *instances] if name not in known]
    if missing:
        raise CliError(
            f"{group.group_id} has no member {missing[0]}", "kctl groups describe --members"
        )
    return [
        member
        for member in group.members
        if all_members or member.member_id in members or member.group_instance_id in instances
    ]
