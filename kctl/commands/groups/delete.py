"""`kctl groups delete` and `delete-offsets`."""

import typer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_offsets import committed_offsets, delete_offsets
from kctl.admin.group_source import GroupSource, ask_groups
from kctl.admin.groups import list_groups
from kctl.cli.arguments.zookeeper import OldGroupsOption
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.missing import no_such
from kctl.cli.options import KafkaText, session_of
from kctl.cli.tables import partition_name
from kctl.commands.groups.arguments import (
    AllGroups,
    GroupName,
    GroupNames,
    GroupOption,
    Topics,
    chosen_groups,
    chosen_partitions,
)
from kctl.model.groups import Group
from kctl.model.outcomes import Outcome
from kctl.views.groups import COMMITTED_COLUMNS, STATE_COLUMNS, committed_row, state_row
from kctl.views.kafka_text.groups import delete_offsets_text, delete_text
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.quantities import plural

NO_OFFSET = "no offset"
"""The status of a partition for which the group had committed nothing."""


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
    """Delete groups and their offsets; they must have no members."""
    session = session_of(ctx)
    wanted = [*(names or []), *(group_option or [])]

    async def find(source: GroupSource) -> list[Group]:
        return await source.described(await chosen_groups(source, wanted, all_groups=all_groups))

    groups = ask_groups(session, zookeeper, find)
    missing = [group.group_id for group in groups if not group.exists]
    # In a real run the others are deleted, and the result of each group is shown.
    if missing and not text_format and (dry_run or len(missing) == len(groups)):
        there = ask_groups(session, zookeeper, lambda source: source.listed(), partial=True)
        raise no_such("group", missing, [group.group_id for group in there])
    plan = Plan(
        f"Delete {plural(len(groups), 'group')}?",
        [state_row(group) for group in groups],
        STATE_COLUMNS,
        "group",
        outcome_columns("group"),
    )
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
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
    """Delete committed offsets of topics that a group no longer consumes."""
    session = session_of(ctx)
    if not topics:
        raise CliError(
            "no topic specified", "e.g. --topic orders, or --topic orders:0,1", ExitStatus.USAGE
        )

    async def find(client: Client) -> dict[TopicPartition, int | None]:
        places = await chosen_partitions(client, topics, must_exist=False)
        offsets = (await committed_offsets(client, [group]))[group]
        return {place: offsets.get(place) for place in places}

    found = ask(session, find)
    rows = [committed_row(place, offset) for place, offset in found.items()]
    question = f"Delete {plural(len(rows), 'offset')} of {group}?"
    plan = Plan(question, rows, COMMITTED_COLUMNS, partition_name, outcome_columns("partition"))
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return
    error, outcomes = ask(
        session,
        lambda client: delete_offsets(client, group, found),
        check=f"kctl groups describe {group}",
    )
    if error:
        outcomes = dict.fromkeys(found, error)
    if text_format:
        session.out.text(delete_offsets_text(group, topics, error, outcomes))
        if any(outcomes.values()):
            raise typer.Exit(ExitStatus.FAILED)
        return
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        there = ask(session, list_groups, partial=True)
        raise no_such("group", [group], [one.group_id for one in there])
    done = [
        Outcome(str(place), outcomes[place], NO_OFFSET if found[place] is None else "")
        for place in sorted(outcomes)
    ]
    show_outcomes(session.out, done, "partition", "deleted")
