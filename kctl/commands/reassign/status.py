"""`kctl reassign list` and `verify`."""

from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.reassignments import current_replicas, list_reassignments, replica_sizes
from kctl.admin.topics import find_topics
from kctl.cli.arguments.topics import Regex, TopicNames, select
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import ExitStatus
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.tables import partition_name
from kctl.commands.reassign.options import (
    KafkaPlanFile,
    PlanFile,
    PreserveThrottles,
    parse_plan,
)
from kctl.model.assignments import Assignment
from kctl.model.log_dirs import LogDir
from kctl.model.reassignments import Reassignments, ReplicaSizes
from kctl.operations.reassignment.throttling import CLEAR_HINT, clear_leaked, clear_like_kafka
from kctl.operations.throttles import find_throttles
from kctl.plans.reassignment.log_dirs import log_dir_moves
from kctl.plans.reassignment.progress import copied_bytes
from kctl.plans.reassignment.states import all_completed, states_of
from kctl.views.kafka_text.reassign import list_lines, verification_lines
from kctl.views.quantities import plural
from kctl.views.reassignments import (
    COPYING_COLUMNS,
    STATE_COLUMNS,
    copying_row,
    log_dir_move_row,
    state_row,
)


def list_moves(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    text_format: KafkaText = None,
) -> None:
    """List the reassignments in progress and their copied bytes."""
    session = session_of(ctx)
    wanted = select(names, regex=regex)

    async def question(client: Client) -> tuple[Reassignments, ReplicaSizes]:
        moving = await list_reassignments(client)
        if not moving or text_format:
            return moving, {}
        topics = await find_topics(client, sorted({tp.topic for tp in moving}))
        return moving, await replica_sizes(client, topics)

    moving, sizes = ask(session, question)
    if text_format:
        session.out.lines(list_lines(moving))
        return
    chosen = set(wanted.pick({partition.topic for partition in moving}))
    rows = [
        copying_row(one, *copied_bytes(one, sizes))
        for partition, one in moving.items()
        if partition.topic in chosen
    ]
    session.out.rows(rows, COPYING_COLUMNS, name=partition_name)


def verify(
    ctx: typer.Context,
    file: PlanFile = None,
    clear_throttles: Annotated[
        bool,
        typer.Option(
            "--clear-throttles", help="Remove throttles without a reassignment in progress."
        ),
    ] = False,
    text_format: KafkaText = None,
    kafka_file: KafkaPlanFile = None,
    preserve_throttles: PreserveThrottles = False,
) -> ExitStatus:
    """Check whether a plan is complete; status 3 if it is not.

    With --format kafka, all throttles are removed once no reassignment is in progress, as Kafka's
    tool does.
    """
    session = session_of(ctx)
    wanted = parse_plan(file, kafka_file)

    async def question(client: Client) -> tuple[Reassignments, Assignment, list[LogDir]]:
        moving = await list_reassignments(client)
        dirs = await describe_log_dirs(client) if wanted.log_dirs else []
        return moving, await current_replicas(client, wanted.replicas), dirs

    moving, current, dirs = ask(session, question)
    states = states_of(wanted.replicas, moving, current)
    moves = log_dir_moves(wanted.log_dirs, dirs)
    if text_format:
        session.out.lines(verification_lines(states, moves))
        if not (moving or any(move.state.is_active for move in moves) or preserve_throttles):
            refuse_if_read_only(session)
            clear_like_kafka(session, wanted.replicas)
        return ExitStatus.OK
    rows = [*map(state_row, states), *map(log_dir_move_row, moves)]
    session.out.rows(rows, STATE_COLUMNS, name=partition_name)
    _settle_throttles(session, clear=clear_throttles)
    done = all_completed(states) and all(move.state == "completed" for move in moves)
    return ExitStatus.OK if done else ExitStatus.FOUND


def _settle_throttles(session: Session, *, clear: bool) -> None:
    if clear:
        refuse_if_read_only(session)
        clear_leaked(session)
    elif leaked := [one for one in ask(session, find_throttles, partial=True) if one.leaked]:
        count = plural(len(leaked), "throttle")
        session.out.note(f"{count} set although no reassignment is in progress: {CLEAR_HINT}")
