"""When a reader has seen all that it was sent for. Pure."""

from collections.abc import Mapping

from broker.model import TopicPartition


class StopRule:
    """Ends a reading partition by partition.

    `ends` has the offset at which each partition is done, that one not included.
    Invariant: a partition that is done never becomes open again.
    """

    def __init__(self, ends: Mapping[TopicPartition, int]) -> None:
        self._ends = dict(ends)
        self._open = set(ends)

    @property
    def is_done(self) -> bool:
        """Whether every partition is done."""
        return not self._open

    def wants(self, partition: TopicPartition, offset: int) -> bool:
        """Whether the record at `offset` belongs to the reading."""
        end = self._ends[partition]
        self.passed(partition, offset + 1)
        return offset < end

    def passed(self, partition: TopicPartition, position: int) -> None:
        """The reader has come to `position`; what lies before may have been markers or gaps."""
        if position >= self._ends[partition]:
            self._open.discard(partition)
