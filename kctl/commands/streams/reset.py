"""`kctl streams reset`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_changes import remove_members
from kctl.admin.group_offsets import commit_offsets, committed_offsets
from kctl.admin.groups import describe_groups
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.admin.topics import delete_topics, find_topics
from kctl.cli.arguments.amounts import INT64_MAX
from kctl.cli.arguments.files import read_text
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus, usage
from kctl.cli.missing import no_such
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.times import now_ms, parse_time_ms
from kctl.model.groups import Group
from kctl.model.lag import LogBounds
from kctl.model.offset_resets import NewOffset
from kctl.model.offsets import END, START, Anchor, Position
from kctl.model.outcomes import Outcome
from kctl.operations.offset_scenarios import Scenario, wanted_offsets
from kctl.plans.offset_resets import parse_csv, plan_reset
from kctl.plans.streams import internal_topics
from kctl.views.kafka_text.streams import range_lines, reset_lines
from kctl.views.outcomes import outcome_hint, show_outcomes
from kctl.views.streams import RESET_COLUMNS, reset_rows


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    application_id: str
    inputs: tuple[str, ...]
    intermediates: tuple[str, ...]
    internals: tuple[str, ...]
    """Empty for all internal topics."""
    scenario: Scenario


@dataclass(frozen=True)
class Reset:
    """What a reset does: new offsets, topics to delete, and members to remove."""

    group: Group
    inputs: tuple[NewOffset, ...]
    intermediates: tuple[NewOffset, ...]
    internals: tuple[str, ...]
    range_notes: tuple[str, ...]
    """Remarks of Kafka's tool on offsets outside the log."""


def _topics(name: str, text: str) -> object:
    return typer.Option(name, metavar="TOPIC,…", help=text, show_default=False)


def reset(
    ctx: typer.Context,
    application: Annotated[
        str | None,
        typer.Argument(metavar="APPLICATION", help="The application id.", show_default=False),
    ] = None,
    application_option: Annotated[
        str | None, typer.Option("--application-id", metavar="ID", hidden=True)
    ] = None,
    input_topics: Annotated[
        list[str] | None,
        _topics("--input-topics", "Topics that the application reads; can be repeated."),
    ] = None,
    intermediate_topics: Annotated[
        list[str] | None,
        _topics("--intermediate-topics", "Topics that it writes and reads: offsets go to the end."),
    ] = None,
    internal: Annotated[
        list[str] | None,
        _topics("--internal-topics", "Delete only these of its internal topics."),
    ] = None,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="Input topics: to the log start (default).")
    ] = False,
    to_latest: Annotated[
        bool, typer.Option("--to-latest", help="Input topics: to the log end.")
    ] = False,
    to_offset: Annotated[
        int | None, typer.Option(min=0, max=INT64_MAX, help="Input topics: to this offset.")
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option(help="Input topics: shift by N offsets; negative to go back.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Input topics: to the first record at or after a time."),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Input topics: to this long ago, e.g. 15m or PT15M."),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Input topics: to the offsets of a CSV file."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Remove members that are still in the group; they must be stopped."
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
) -> None:
    """Reset a Kafka Streams application, so that it processes its input again.

    Resets the offsets of its input topics, moves those of intermediate topics to the end, and
    deletes its internal topics (changelog, repartition and foreign-key join topics). The
    application must be stopped. Its local state must be deleted as well: by KafkaStreams#cleanUp(),
    or by deleting its state.dir. Output topics are left alone.
    """
    session = session_of(ctx)
    positions = {
        "--to-earliest": START if to_earliest else None,
        "--to-latest": END if to_latest else None,
        "--to-offset": None if to_offset is None else Position(Anchor.OFFSET, to_offset),
        "--to-datetime": _moment(to_datetime),
        "--by-duration": _moment(f"-{by_duration}") if by_duration else None,
    }
    wanted = Wanted(
        _application_id(application or application_option),
        _names(input_topics),
        _names(intermediate_topics),
        _names(internal),
        _scenario([one for one in positions.values() if one], shift_by, from_file),
    )
    planned = ask(session, lambda client: _plan(client, wanted))
    if planned.group.members and not force:
        raise CliError(
            f"{wanted.application_id} has active members: nothing was changed",
            "stop all instances of the application; --force removes the remaining members",
        )
    if text_format and dry_run:
        _show_kafka(session, wanted, planned, dry_run=True)
        return
    rows = reset_rows(planned.inputs, planned.intermediates, planned.internals)
    plan = Plan(f"Reset {wanted.application_id}?", rows, RESET_COLUMNS, "topic", RESET_COLUMNS)
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return
    _execute(session, planned)
    if text_format:
        _show_kafka(session, wanted, planned, dry_run=False)
    else:
        session.out.rows(rows, RESET_COLUMNS, name="topic")


def _application_id(text: str | None) -> str:
    if not text:
        raise CliError("no application specified", "use its application.id", ExitStatus.USAGE)
    return text


def _names(texts: Sequence[str] | None) -> tuple[str, ...]:
    names = (name.strip() for text in texts or () for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _moment(text: str | None) -> Position | None:
    return Position(Anchor.TIME, usage(parse_time_ms, text, now_ms())) if text else None


def _scenario(
    positions: Sequence[Position], shift_by: int | None, from_file: str | None
) -> Scenario:
    chosen = len(positions) + (shift_by is not None) + (from_file is not None)
    if chosen > 1:
        raise CliError(
            "specify at most one reset option",
            "--to-earliest, --to-latest, --to-offset, --shift-by, --to-datetime, --by-duration or "
            "--from-file",
            ExitStatus.USAGE,
        )
    if not chosen:
        return Scenario(START)
    return Scenario(positions[0] if positions else None, shift_by=shift_by, from_file=from_file)


async def _plan(client: Client, wanted: Wanted) -> Reset:
    topics = {topic.name: topic for topic in await find_topics(client)}
    named = (*wanted.inputs, *wanted.intermediates, *wanted.internals)
    if missing := [name for name in named if name not in topics]:
        raise no_such("topic", missing, topics)
    internals = internal_topics(topics, wanted.application_id)
    if foreign := [name for name in wanted.internals if name not in internals]:
        raise CliError(
            f"not internal topics of {wanted.application_id}: {', '.join(foreign)}",
            f"its internal topics are {', '.join(internals) or '(none)'}",
        )
    (group,) = await describe_groups(client, [wanted.application_id])
    committed = (await committed_offsets(client, [wanted.application_id]))[wanted.application_id]

    def places(names: Sequence[str]) -> list[TopicPartition]:
        return [TopicPartition(name, one.id) for name in names for one in topics[name].partitions]

    inputs, ends = places(wanted.inputs), places(wanted.intermediates)
    if wanted.scenario.from_file:
        offsets = usage(parse_csv, read_text(wanted.scenario.from_file), [wanted.application_id])
        own = offsets.get(wanted.application_id, {})
        new = {place: own[place] for place in inputs if place in own}
    else:
        new = dict(await wanted_offsets(client, inputs, wanted.scenario, committed, None))
    starts, lasts = await asyncio.gather(
        log_starts(client, [*inputs, *ends]), log_ends(client, [*inputs, *ends])
    )
    bounds = LogBounds(starts, lasts)
    at_end = {place: lasts[place] for place in ends}
    return Reset(
        group,
        plan_reset(wanted.application_id, new, committed, bounds).offsets,
        plan_reset(wanted.application_id, at_end, committed, bounds).offsets,
        wanted.internals or tuple(internals),
        tuple(range_lines(new, bounds)) if _gives_offsets(wanted.scenario) else (),
    )


def _gives_offsets(scenario: Scenario) -> bool:
    """Whether offsets are given as numbers, which may be outside the log."""
    position = scenario.position
    return position is None or position.anchor is Anchor.OFFSET


def _execute(session: Session, planned: Reset) -> None:
    name = planned.group.group_id
    check = f"kctl groups describe {name}"
    if planned.group.members:
        removed = ask(
            session,
            lambda client: remove_members(client, name, planned.group.members),
            check=check,
        )
        if failed := [one for one in removed if one.error]:
            raise CliError(f"cannot remove member {failed[0].name}: {failed[0].reason}")
    offsets = {new.place: new.new_offset for new in (*planned.inputs, *planned.intermediates)}
    if offsets:
        outcomes = ask(session, lambda client: commit_offsets(client, name, offsets), check=check)
        for place, error in outcomes.items():
            if error is not ErrorCode.NONE:
                hint = outcome_hint(Outcome(name, error), "group")
                raise CliError(f"{name}: cannot commit {place} ({error.name})", hint)
    if planned.internals:
        deleted = ask(
            session,
            lambda client: delete_topics(client, planned.internals, timeout_s=session.timeout),
            check="kctl topics list",
        )
        if any(one.error for one in deleted):
            show_outcomes(session.out, deleted, "topic", "deleted")


def _show_kafka(session: Session, wanted: Wanted, planned: Reset, *, dry_run: bool) -> None:
    session.out.lines(
        reset_lines(
            wanted.application_id,
            wanted.inputs,
            wanted.intermediates,
            planned.inputs,
            planned.intermediates,
            planned.internals,
            planned.range_notes,
            inferred=not wanted.internals,
            dry_run=dry_run,
        )
    )
