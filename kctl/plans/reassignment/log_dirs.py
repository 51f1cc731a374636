"""Replicas on their way to another directory of their broker. Pure."""

from collections.abc import Iterable, Mapping

from kctl.model.assignments import ReplicaPlace
from kctl.model.log_dirs import LogDir
from kctl.model.reassignments import LogDirMove


def log_dir_moves(
    wanted: Mapping[ReplicaPlace, str], log_dirs: Iterable[LogDir]
) -> list[LogDirMove]:
    """The moves that a plan wants, by broker and partition."""
    current: dict[ReplicaPlace, str] = {}
    future: dict[ReplicaPlace, str] = {}
    for log_dir in log_dirs:
        for replica in log_dir.replicas:
            places = future if replica.is_future else current
            places[replica.partition, log_dir.broker_id] = log_dir.path
    ordered = sorted(wanted, key=lambda place: (place[1], place[0]))
    return [
        LogDirMove(place[0], place[1], wanted[place], current.get(place), future.get(place))
        for place in ordered
    ]
