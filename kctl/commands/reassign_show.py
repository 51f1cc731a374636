"""`kctl reassign list` and `verify`: how far reassignments are."""

from collections.abc import Mapping
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_dirs import LogDir, describe_log_dirs
from kctl.admin.reassignments import (
    Moving,
    Reassignment,
    current_replicas,
    list_reassignments,
    replica_sizes,
)
from kctl.admin.throttles import find_throttles
from kctl.admin.topics import find_topics
from kctl.commands.reassign_throttle import CLEAR_HINT, clear_as_kafka_does, clear_leaked
from kctl.commands.reassign_words import (
    KafkaPlanFile,
    PlanFile,
    PreserveThrottles,
    parse_plan,
)
from kctl.confirm import refuse_if_read_only
from kctl.errors import ExitStatus
from kctl.kafka_text.reassign import list_lines, verification_lines
from kctl.options import KafkaText, Session, session_of
from kctl.plans.reassign_draft import Assignment
from kctl.plans.reassign_log_dirs import LogDirMove, log_dir_moves
from kctl.plans.reassign_progress import arrived
from kctl.plans.reassign_states import COLUMNS as STATE_COLUMNS
from kctl.plans.reassign_states import all_completed, states_of
from kctl.tables import Column
from kctl.words.topics import Regex, TopicNames, select

LIST_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("adding"),
    Column("removing"),
    Column("arrived_bytes", "ARRIVED", right=True),
    Column("move_bytes", "BYTES", right=True),
    Column("percent", "%", right=True),
]

Sizes = Mapping[tuple[TopicPartition, int], int]


def list_moves(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    text_format: KafkaText = None,
) -> None:
    """Show the reassignments under way, and how much of each has arrived."""
    session = session_of(ctx)
    wanted = select(names, regex=regex)

    async def question(client: Client) -> tuple[Moving, Sizes]:
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
    rows = [_row(one, sizes) for tp, one in moving.items() if tp.topic in chosen]
    session.out.rows(rows, LIST_COLUMNS, name="topic")


def _row(one: Reassignment, sizes: Sizes) -> dict[str, object]:
    there, all_bytes = arrived(one, sizes)
    return one.row() | {
        "arrived_bytes": there,
        "move_bytes": all_bytes,
        "percent": round(100 * there / all_bytes) if all_bytes else None,
    }


def verify(
    ctx: typer.Context,
    file: PlanFile = None,
    clear_throttles: Annotated[
        bool,
        typer.Option("--clear-throttles", help="Take away throttles that nothing needs any more."),
    ] = False,
    text_format: KafkaText = None,
    kafka_file: KafkaPlanFile = None,
    preserve_throttles: PreserveThrottles = False,
) -> ExitStatus:
    """Check whether a plan has been carried out; status 3 if not, or not yet.

    Kafka's tool clears all throttles once nothing moves; so does this with --format kafka.
    """
    session = session_of(ctx)
    wanted = parse_plan(file, kafka_file)

    async def question(client: Client) -> tuple[Moving, Assignment, list[LogDir]]:
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
            clear_as_kafka_does(session, wanted.replicas)
        return ExitStatus.OK
    rows = [state.row() for state in states] + [_move_row(move) for move in moves]
    session.out.rows(rows, STATE_COLUMNS, name="topic")
    _settle_throttles(session, clear=clear_throttles)
    done = all_completed(states) and all(move.state == "completed" for move in moves)
    return ExitStatus.OK if done else ExitStatus.FOUND


def _move_row(move: LogDirMove) -> dict[str, object]:
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "replicas": f"{move.broker}:{move.current}",
        "wanted": f"{move.broker}:{move.target}",
        "status": move.state,
    }


def _settle_throttles(session: Session, *, clear: bool) -> None:
    if clear:
        refuse_if_read_only(session)
        clear_leaked(session)
    elif leaked := [one for one in ask(session, find_throttles) if one.leaked]:
        session.out.note(f"{len(leaked)} throttles are left though nothing moves: {CLEAR_HINT}")
