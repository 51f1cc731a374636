"""`kctl reassign cancel`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.log_offsets import partitions_of
from kctl.admin.reassignments import cancel_reassignments, list_reassignments
from kctl.cli.arguments.partitions import PartitionChoice, parse_partitions
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import ExitStatus, usage_error
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.tables import partition_name
from kctl.commands.reassign.options import PreserveThrottles, parse_plan
from kctl.model.assignments import Assignment, ReassignmentFile
from kctl.model.outcomes import Outcome
from kctl.model.reassignments import Reassignments
from kctl.operations.reassignment.log_dirs import move_log_dirs
from kctl.operations.reassignment.throttling import clear_leaked, clear_like_kafka
from kctl.plans.reassignment.log_dirs import log_dir_moves
from kctl.views.kafka_text.reassign import (
    NO_MOVES_ACTIVE,
    cancelled_line,
    failed_lines,
    log_dir_lines,
)
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.quantities import plural
from kctl.views.reassignments import IN_PROGRESS_COLUMNS, reassignment_row


def cancel(
    ctx: typer.Context,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC[:PARTITION,…]…",
            help="Topics, or some of their partitions.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "--reassignment-json-file",
            metavar="FILE",
            help="Cancel the partitions of a JSON plan.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Cancel all reassignments in progress.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    preserve_throttles: PreserveThrottles = False,
) -> ExitStatus | None:
    """Cancel reassignments: partitions return to their previous replicas.

    Throttles without a reassignment in progress are removed.
    """
    session = session_of(ctx)
    if sum([bool(partitions), file is not None, everything]) != 1:
        raise usage_error("no reassignment specified", "name topics, or use --all or --file")
    if text_format and file is None:
        raise usage_error("--format kafka requires a plan file", "use --file")
    wanted = parse_plan(file, None) if file else None
    moving = ask(session, list_reassignments)
    chosen = _chosen(moving, partitions, wanted.replicas if wanted else None)
    if not chosen and not text_format:
        if partitions:
            wanted_topics = [word.partition(":")[0] for word in partitions]
            ask(session, lambda client: partitions_of(client, wanted_topics))  # they must exist
        session.out.nothing("no such reassignment in progress")
        return None
    if not confirm_plan(session, _cancel_plan(moving, chosen), yes=yes, dry_run=dry_run):
        return None
    if text_format and wanted:
        return _cancel_as_kafka(session, wanted, moving, preserve_throttles=preserve_throttles)
    outcomes = _cancel(session, chosen)
    if not preserve_throttles:
        clear_leaked(session)
    show_outcomes(session.out, outcomes, "partition", "cancelled")
    return None


def _chosen(
    moving: Reassignments, partitions: Sequence[str] | None, wanted: Assignment | None
) -> list[TopicPartition]:
    if wanted is not None:
        return [partition for partition in moving if partition in wanted]
    if partitions:
        return PartitionChoice(parse_partitions(partitions)).pick(moving)
    return list(moving)


def _cancel_plan(moving: Reassignments, chosen: Sequence[TopicPartition]) -> Plan:
    rows = [reassignment_row(moving[partition]) for partition in chosen]
    return Plan(
        f"Cancel {plural(len(chosen), 'reassignment')}?",
        rows,
        IN_PROGRESS_COLUMNS,
        partition_name,
        outcome_columns("partition"),
    )


def _cancel(session: Session, chosen: Sequence[TopicPartition]) -> list[Outcome]:
    """Cancel reassignments; those that have completed in the meantime count as success."""

    async def question(client: Client) -> list[Outcome]:
        return await cancel_reassignments(client, chosen, timeout_s=session.timeout)

    outcomes = ask(session, question, check="kctl reassign list") if chosen else []
    return [
        Outcome(one.name, message="already completed")
        if one.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        else one
        for one in outcomes
    ]


def _cancel_as_kafka(
    session: Session, wanted: ReassignmentFile, moving: Reassignments, *, preserve_throttles: bool
) -> ExitStatus:
    # Kafka's tool skips partitions that only gain replicas.
    active = [
        tp
        for tp in moving
        if tp in wanted.replicas and (not moving[tp].adding or moving[tp].removing)
    ]
    outcomes = _cancel(session, active)
    if any(one.error for one in outcomes):
        session.out.lines(failed_lines(outcomes, cancelling=True))
        return ExitStatus.FAILED
    session.out.lines([cancelled_line(active)])
    dirs = ask(session, describe_log_dirs) if wanted.log_dirs else []
    back = {
        (move.partition, move.broker): move.current
        for move in log_dir_moves(wanted.log_dirs, dirs)
        if move.state.is_active and move.current
    }
    if back:
        session.out.lines(log_dir_lines(move_log_dirs(session, ReassignmentFile({}, back))))
    else:
        session.out.text(NO_MOVES_ACTIVE)  # without a line feed, as in the tool
    if not preserve_throttles:
        clear_like_kafka(session, wanted.replicas)
    return ExitStatus.OK
