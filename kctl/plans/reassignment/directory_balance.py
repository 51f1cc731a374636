"""Plans moves between the log directories of each broker, so that their sizes become even.

Replicas stay on their broker, so nothing is copied over the network. Only selected replicas move;
all replicas count. Directories that are offline, and replicas that are already moving, are left
alone.
"""

from collections.abc import Collection, Iterable, Sequence

from broker.errors import ErrorCode
from broker.model import TopicPartition
from kctl.model.log_dirs import DirectoryMove, LogDir

TOLERATED = 20
"""Directories are balanced if each is within 5 % of the mean."""


def plan_directory_moves(
    dirs: Iterable[LogDir], topics: Collection[str], drained: Collection[str] = ()
) -> list[DirectoryMove]:
    """Moves of replicas of these topics, sorted by broker and partition.

    Directories whose path is in `drained` end up without replicas of these topics.
    """
    by_broker: dict[int, list[LogDir]] = {}
    for log_dir in dirs:
        if log_dir.error is ErrorCode.NONE:
            by_broker.setdefault(log_dir.broker_id, []).append(log_dir)
    moves = [
        move
        for broker in sorted(by_broker)
        for move in _Broker(by_broker[broker], topics, drained).moves()
    ]
    return sorted(moves, key=lambda move: (move.broker, move.partition))


class _Broker:
    """The directories of one broker while moves are chosen.

    Invariant: `_sizes` are the sizes after the moves chosen so far; a replica moves at most once.
    """

    def __init__(
        self, dirs: Sequence[LogDir], topics: Collection[str], drained: Collection[str]
    ) -> None:
        self._broker = dirs[0].broker_id
        self._sizes = {one.path: sum(r.size_bytes for r in one.replicas) for one in dirs}
        moving = {r.partition for one in dirs for r in one.replicas if r.is_future}
        self._movable = {
            one.path: sorted(
                (replica.size_bytes, replica.partition)
                for replica in one.replicas
                if replica.partition.topic in topics and replica.partition not in moving
            )
            for one in dirs
        }
        self._drained = {path for path in self._sizes if path in drained}
        self._usable = sorted(self._sizes.keys() - self._drained)

    def moves(self) -> list[DirectoryMove]:
        """The moves: first out of drained directories, then from the fullest to the emptiest."""
        if not self._usable:
            return []
        found = []
        for path in sorted(self._drained):
            for size, partition in reversed(self._movable[path]):
                found.append(self._move(partition, size, path, min(self._usable, key=self._size)))
        while step := self._next():
            found.append(self._move(*step))
        return found

    def _size(self, path: str) -> tuple[int, str]:
        return self._sizes[path], path

    def _next(self) -> tuple[TopicPartition, int, str, str] | None:
        """The largest replica that fits into the gap between the fullest and the emptiest."""
        fullest, emptiest = (
            max(self._usable, key=self._size),
            min(self._usable, key=self._size),
        )
        mean = sum(self._sizes[path] for path in self._usable) / len(self._usable)
        gap = self._sizes[fullest] - self._sizes[emptiest]
        if self._sizes[fullest] <= mean + mean / TOLERATED:
            return None
        for size, partition in reversed(self._movable[fullest]):
            if 0 < size <= gap / 2:
                return partition, size, fullest, emptiest
        return None

    def _move(
        self, partition: TopicPartition, size: int, source: str, target: str
    ) -> DirectoryMove:
        self._movable[source] = [one for one in self._movable[source] if one[1] != partition]
        self._sizes[source] -= size
        self._sizes[target] += size
        return DirectoryMove(partition, self._broker, source, target, size)
