"""The output of kafka-reassign-partitions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from broker.model import TopicPartition
from kctl.cli.arguments.plan_files import reassignment_json
from kctl.model.assignments import Assignment
from kctl.model.outcomes import Outcome
from kctl.model.reassignments import (
    LogDirMove,
    LogDirMoveState,
    PartitionState,
    Reassignments,
    ReassignmentStatus,
)
from kctl.views.kafka_text.java_maps import hash_map_order, names_in_map_order

EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to"
    " override this and create a new partition assignment in addition to the existing one. The"
    " --additional flag can also be used to change the throttle by resubmitting the current"
    " reassignment."
)
VERIFY_WARNING: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the"
    " throttle is removed."
)
MISSING_RACKS: Final = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make"
    " replica assignment without rack information."
)
NOTHING_ACTIVE: Final = "None of the specified partition reassignments are active."
NO_MOVES_ACTIVE: Final = "None of the specified partition moves are active."


def error_line(message: str) -> str:
    """The line of a failed action; the tool prints a Java stack trace below it."""
    return f"Error: {message}"


def missing_text(message: str) -> str:
    """The error message about a missing topic or partition, as wrapped by Java."""
    return f"org.apache.kafka.common.errors.UnknownTopicOrPartitionException: {message}"


def generation_lines(current: Assignment, proposed: Assignment) -> list[str]:
    """The lines of `--generate`."""
    return [
        "Current partition replica assignment",
        reassignment_json(current),
        "",
        "Proposed partition reassignment configuration",
        reassignment_json(proposed),
    ]


def rollback_lines(current: Assignment) -> list[str]:
    """The first lines of `--execute`."""
    return [
        "Current partition replica assignment",
        "",
        reassignment_json(current),
        "",
        "Save this to use as the --reassignment-json-file option during rollback",
    ]


def throttle_lines(rate: int | None, log_dirs_rate: int | None) -> Iterator[str]:
    """The lines of `--execute` about throttles."""
    if rate is not None or log_dirs_rate is not None:
        yield VERIFY_WARNING
    if rate is not None:
        yield f"The inter-broker throttle limit was set to {rate} B/s"
    if log_dirs_rate is not None:
        yield f"The replica-alter-dir throttle limit was set to {log_dirs_rate} B/s"


def started_line(partitions: Iterable[TopicPartition]) -> str:
    """The line of a successful `--execute`."""
    names = sorted(partitions)
    return f"Successfully started partition reassignment{_s(names)} for {_joined(names)}"


def failed_lines(outcomes: Sequence[Outcome], *, cancelling: bool = False) -> list[str]:
    """The lines for partitions that failed."""
    failed = [one for one in outcomes if one.error]
    title = "Error reassigning partition(s):"
    if cancelling:
        title = f"Error cancelling partition reassignment{_s(failed)} for:"
    return [title, *(f"{one.name}: {one.message or one.error.name}" for one in failed)]


def verification_lines(
    states: Sequence[PartitionState], moves: Sequence[LogDirMove]
) -> Iterator[str]:
    """The lines of `--verify`, up to those about throttles."""
    yield "Status of partition reassignment:"
    yield from map(_state_line, states)
    yield from [_move_line(move) for move in moves] or [""]


def clearing_lines(brokers: Iterable[int], topics: Iterable[str]) -> list[str]:
    """The lines about cleared throttles; ids and names in the order of Java's sets."""
    ids = hash_map_order(brokers, int)
    names = names_in_map_order(topics)
    return [
        f"Clearing broker-level throttles on broker{_s(ids)} {_joined(ids)}",
        f"Clearing topic-level throttles on topic{_s(names)} {','.join(names)}",
    ]


def list_lines(moving: Reassignments) -> list[str]:
    """The lines of `--list`."""
    if not moving:
        return ["No partition reassignments found."]
    lines = ["Current partition reassignments:"]
    for partition, one in sorted(moving.items()):
        adding = f" adding: {_joined(one.adding)}." if one.adding else ""
        removing = f" removing: {_joined(one.removing)}." if one.removing else ""
        lines.append(f"{partition}: replicas: {_joined(one.replicas)}.{adding}{removing}")
    return lines


def cancelled_line(partitions: Iterable[TopicPartition]) -> str:
    """The line of `--cancel`."""
    names = sorted(partitions)
    if not names:
        return NOTHING_ACTIVE
    return f"Successfully cancelled partition reassignment{_s(names)} for: {_joined(names)}"


def log_dir_lines(started: Mapping[tuple[TopicPartition, int], str]) -> list[str]:
    """The lines about started moves between log directories."""
    by_broker = sorted(started.items(), key=lambda item: (item[0][1], item[0][0]))
    return [
        f"Successfully started moving log directory to {log_dir} for replica"
        f" {partition} with broker {broker} "
        for (partition, broker), log_dir in by_broker
    ]


def _state_line(state: PartitionState) -> str:
    if state.status is ReassignmentStatus.COMPLETED:
        return f"Reassignment of partition {state.partition} is completed."
    if state.status is ReassignmentStatus.IN_PROGRESS:
        return f"Reassignment of partition {state.partition} is still in progress."
    return (
        f"There is no active reassignment of partition {state.partition}, but replica set is"
        f" {_joined(state.replicas)} rather than {_joined(state.wanted)}."
    )


def _move_line(move: LogDirMove) -> str:
    partition, broker = move.partition, move.broker
    if move.state is LogDirMoveState.COMPLETED:
        return f"Reassignment of replica {partition}-{broker} completed successfully."
    if move.state is LogDirMoveState.IN_PROGRESS:
        return f"Reassignment of replica {partition}-{broker} is still in progress."
    if move.state is LogDirMoveState.ELSEWHERE:
        return (
            f"Partition {partition} on broker {broker} is being moved to log dir {move.future}"
            f" instead of {move.target}."
        )
    if move.state is LogDirMoveState.CANCELLED:
        return (
            f"Partition {partition} on broker {broker} is not being moved from log dir"
            f" {move.current} to {move.target}."
        )
    return (
        f"Partition {partition} is not found in any live log dir on broker {broker}. There is"
        " likely an offline log directory on the broker."
    )


def _joined(items: Iterable[object]) -> str:
    return ",".join(map(str, items))


def _s(items: Sequence[object]) -> str:
    return "" if len(items) == 1 else "s"
