"""`kctl reassign plan --balance-dirs` and `--drain-dir`: moves within brokers."""

from pathlib import Path

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.topic_selection import require_all_found
from kctl.admin.topics import find_topics
from kctl.cli.arguments.plan_files import reassignment_json
from kctl.cli.arguments.topics import Selection
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.model.assignments import Assignment, ReassignmentFile
from kctl.model.log_dirs import DirectoryMove, LogDir
from kctl.operations.reassignment.rollback import write_plan_file
from kctl.plans.reassignment.directory_balance import plan_directory_moves
from kctl.views.quantities import human_bytes, plural
from kctl.views.reassignments import DIRECTORY_COLUMNS, directory_row


def plan_directories(
    session: Session,
    wanted: Selection,
    brokers: frozenset[int],
    drained: frozenset[str],
    out: Path | None,
) -> None:
    """Show the moves between directories, and write them to `out`."""

    async def query(client: Client) -> tuple[Assignment, list[LogDir]]:
        found = await find_topics(client, wanted.exact_names)
        chosen = set(wanted.pick(topic.name for topic in found))
        topics = [topic for topic in found if topic.name in chosen]
        require_all_found(wanted, topics)
        dirs = await describe_log_dirs(client, brokers or None)
        current = {
            TopicPartition(topic.name, partition.id): partition.replicas
            for topic in topics
            for partition in topic.partitions
        }
        return current, dirs

    # Moves stay within a broker: those of brokers that answer can be planned without the others.
    current, dirs = ask(session, query, partial=True)
    if unknown := sorted(drained - {log_dir.path for log_dir in dirs}):
        raise CliError(
            f"no such log directory: {unknown[0]}", "kctl log-dirs shows the log directories"
        )
    moves = plan_directory_moves(dirs, {tp.topic for tp in current}, drained)
    if out is not None and str(out) == "-":
        session.out.lines([_json(moves, current)])
    else:
        session.out.rows(map(directory_row, moves), DIRECTORY_COLUMNS, name="topic")
    total = human_bytes(sum(move.size_bytes for move in moves))
    count = plural(len(moves), "replica")
    session.out.note(f"{count} to move, {total}" if moves else "nothing to reassign")
    if moves and out is not None and str(out) != "-":
        write_plan_file(out, _json(moves, current))
        session.out.note(f"wrote {out}: run it with kctl reassign execute {out}")


def _json(moves: list[DirectoryMove], current: Assignment) -> str:
    """The plan file: the replicas as they are, and the directories of those that move."""
    partitions = {move.partition: current[move.partition] for move in moves}
    plan = ReassignmentFile(
        partitions, {(move.partition, move.broker): move.target for move in moves}
    )
    return reassignment_json(plan.replicas, plan.log_dirs)
