"""`kctl groups reset-offsets`."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.group_source import GroupSource, ask_groups, ask_groups_and_logs
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.cli.arguments.amounts import INT64_MAX
from kctl.cli.arguments.files import read_text
from kctl.cli.arguments.zookeeper import OldGroupsOption
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus, usage
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.tables import partition_name
from kctl.cli.times import now_ms, parse_time_ms
from kctl.commands.groups.arguments import (
    AllGroups,
    GroupNames,
    GroupOption,
    Topics,
    chosen_groups,
    chosen_partitions,
    refuse_share_groups,
)
from kctl.model.groups import DEAD, EMPTY, Group
from kctl.model.lag import LogBounds
from kctl.model.offset_resets import ResetPlan
from kctl.model.offsets import END, START, Anchor, Position
from kctl.model.outcomes import Outcome
from kctl.operations.offset_scenarios import Scenario, wanted_offsets
from kctl.plans.offset_resets import format_csv, parse_csv, plan_reset
from kctl.views.groups import RESET_COLUMNS, reset_rows
from kctl.views.kafka_text.groups import inactive_error, reset_csv_order, reset_text
from kctl.views.outcomes import outcome_hint
from kctl.views.quantities import plural

SCENARIOS = "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, "
SCENARIOS += "--by-duration, --from-file or --to-group"


@dataclass(frozen=True)
class Scope:
    """The groups and partitions to reset."""

    groups: tuple[str, ...]
    all_groups: bool
    topics: tuple[str, ...]
    all_topics: bool


def reset_offsets(
    ctx: typer.Context,
    names: GroupNames = None,
    group_option: GroupOption = None,
    all_groups: AllGroups = False,
    topics: Topics = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All topics with committed offsets.")
    ] = False,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="Reset to the log start offset.")
    ] = False,
    to_latest: Annotated[
        bool, typer.Option("--to-latest", help="Reset to the log end offset.")
    ] = False,
    to_current: Annotated[
        bool,
        typer.Option("--to-current", help="Keep the committed offset (log end if not committed)."),
    ] = False,
    to_offset: Annotated[
        int | None, typer.Option(min=0, max=INT64_MAX, help="Reset to this offset.")
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option(help="Shift by N offsets; negative to go back.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Reset to the first record at or after this time."),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Reset to this long ago: 15m, 1h30m or PT15M."),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Reset to the offsets in a CSV file of --export."),
    ] = None,
    to_group: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER",
            help="Reset to the committed offsets of another group, on all its topics unless "
            "--topic is given.",
        ),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Execute the reset; same as --yes.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    export: Annotated[
        bool,
        typer.Option(
            "--export",
            help="Print the new offsets as CSV, for --from-file; without --execute also those of "
            "groups with members.",
        ),
    ] = False,
    zookeeper: OldGroupsOption = None,
    text_format: KafkaText = None,
) -> None:
    """Reset committed offsets; without --execute or --yes only show the plan.

    The groups must have no members. Offsets outside the log are moved to its nearer end.
    """
    session = session_of(ctx)
    positions = {
        "--to-earliest": START if to_earliest else None,
        "--to-latest": END if to_latest else None,
        "--to-offset": None if to_offset is None else Position(Anchor.OFFSET, to_offset),
        "--to-datetime": _moment(to_datetime),
        "--by-duration": _ago(by_duration),
    }
    scenario = _scenario(positions, to_current, shift_by, from_file, to_group)
    wanted = [*(names or []), *(group_option or [])]
    scope = Scope(tuple(wanted), all_groups, tuple(topics or []), all_topics)
    is_dry = dry_run or not (execute or yes)
    with_active = export and is_dry and not text_format
    plans, refused = ask_groups_and_logs(
        session,
        zookeeper,
        lambda client, groups: _plan(client, groups, scope, scenario, with_active=with_active),
    )
    rows = [row for plan in plans for row in reset_rows(plan)]
    question = f"Reset {plural(len(rows), 'offset')}?"
    shown = Plan(question, rows, RESET_COLUMNS, partition_name, RESET_COLUMNS)
    if not is_dry and confirm_plan(session, shown, yes=True, dry_run=False):
        check = f"kctl groups describe {' '.join(plan.group_id for plan in plans)}"
        ask_groups(session, zookeeper, lambda groups: _commit(groups, plans), check=check)
    if text_format:
        session.out.text("".join(inactive_error(group.group_id, group.state) for group in refused))
    _show(session, plans, shown, export=export, kafka=bool(text_format))
    if is_dry:
        session.out.note("dry run: nothing was changed; use --execute to reset")
    if refused:
        busy = ", ".join(f"{group.group_id} ({group.state})" for group in refused)
        raise CliError(
            f"not reset, because the group has members: {busy}", "stop the consumers first"
        )


def _moment(text: str | None) -> Position | None:
    return Position(Anchor.TIME, usage(parse_time_ms, text, now_ms())) if text else None


def _ago(text: str | None) -> Position | None:
    return Position(Anchor.TIME, usage(parse_time_ms, f"-{text}", now_ms())) if text else None


def _scenario(
    positions: Mapping[str, Position | None],
    to_current: bool,
    shift_by: int | None,
    from_file: str | None,
    to_group: str | None,
) -> Scenario:
    chosen = [position for position in positions.values() if position]
    others = [to_current or None, shift_by, from_file, to_group]
    if len(chosen) + sum(other is not None for other in others) != 1:
        raise CliError("specify exactly one reset option", SCENARIOS, ExitStatus.USAGE)
    return Scenario(chosen[0] if chosen else None, to_current, shift_by, from_file, to_group)


async def _plan(
    client: Client, groups: GroupSource, scope: Scope, scenario: Scenario, *, with_active: bool
) -> tuple[list[ResetPlan], list[Group]]:
    """A plan for each inactive group, and the active groups.

    With `with_active` also a plan for those: to save their offsets.
    """
    names = await chosen_groups(groups, scope.groups, all_groups=scope.all_groups)
    described, committed = await asyncio.gather(groups.described(names), groups.committed(names))
    refuse_share_groups(described, "reset offsets")
    idle = [group for group in described if with_active or group.state in (EMPTY, DEAD)]
    busy = [group for group in described if group not in idle]
    file = _read_file(scenario.from_file, names) if scenario.from_file else {}
    plans = []
    for group in idle:
        own = committed[group.group_id]
        wanted: Mapping[TopicPartition, int] = file.get(group.group_id, {})
        if not scenario.from_file:
            others = await _offsets_of(groups, scenario.to_group) if scenario.to_group else None
            places = await _places(client, scope, own, others)
            wanted = await wanted_offsets(client, places, scenario, own, others)
        starts, ends = await asyncio.gather(log_starts(client, wanted), log_ends(client, wanted))
        plans.append(plan_reset(group.group_id, wanted, own, LogBounds(starts, ends)))
    return plans, busy


async def _places(
    client: Client,
    scope: Scope,
    committed: Mapping[TopicPartition, int],
    others: Mapping[TopicPartition, int] | None,
) -> list[TopicPartition]:
    """The partitions to reset; without topics, `--to-group` means all of the other group."""
    if others is not None and not scope.topics:
        return sorted(others)
    if scope.all_topics:
        return sorted(committed)
    if not scope.topics:
        raise CliError("no topic specified", "use --topic or --all-topics", ExitStatus.USAGE)
    return await chosen_partitions(client, scope.topics)


async def _offsets_of(groups: GroupSource, name: str) -> Mapping[TopicPartition, int]:
    """The committed offsets of another group; CliError if it has none."""
    offsets = (await groups.committed([name]))[name]
    if not offsets:
        raise CliError(f"group {name!r} has no committed offsets", "kctl groups list")
    return offsets


def _read_file(name: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    return usage(parse_csv, read_text(name), groups)


async def _commit(groups: GroupSource, plans: Sequence[ResetPlan]) -> None:
    for plan in plans:
        offsets = {new.place: new.new_offset for new in plan.offsets}
        outcomes = await groups.commit(plan.group_id, offsets) if offsets else {}
        for place, error in outcomes.items():
            if error is not ErrorCode.NONE:
                hint = outcome_hint(Outcome(plan.group_id, error), "group")
                raise CliError(f"{plan.group_id}: cannot commit {place} ({error.name})", hint)


def _show(
    session: Session, plans: Sequence[ResetPlan], shown: Plan, *, export: bool, kafka: bool
) -> None:
    if export:
        ordered = [reset_csv_order(plan) for plan in plans] if kafka else plans
        session.out.text(format_csv(ordered) + "\n" * kafka)
    elif kafka:
        session.out.text(reset_text(plans))
    else:
        session.out.rows(shown.rows, shown.columns, name=shown.name)
