"""When a reader has read all requested records. No I/O."""

from collections.abc import Mapping

from broker.model import TopicPartition


class StopRule:
    """Tracks which partitions are read to their end.

    `ends`: the end offset of each partition, exclusive.
    *Invariant*: a partition that is done stays done.
    """

    def __init__(self, ends: Mapping[TopicPartition, int]) -> None:
        self._ends = dict(ends)
        self._open = set(ends)

    @property
    def is_done(self) -> bool:
        """Whether every partition is done."""
        return not self._open

    def wants(self, partition: TopicPartition, offset: int) -> bool:
        """Whether the record at `offset` is to be read."""
        end = self._ends[partition]
        self.passed(partition, offset + 1)
        return offset < end

    def passed(self, partition: TopicPartition, position: int) -> None:
        """The reader reached `position`; transaction markers or gaps may lie before it."""
        if position >= self._ends[partition]:
            self._open.discard(partition)
