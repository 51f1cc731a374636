"""What the coordinator asks of the rest of the broker."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from broker.records.batch import Batch


class OffsetsTopic(Protocol):
    """The partitions of `__consumer_offsets` on this broker."""

    @property
    def num_partitions(self) -> int:
        """Of the topic; while there is none, `offsets.topic.num.partitions`."""
        ...

    async def append(self, partition: int, batch: bytes) -> int:
        """Append as leader with acks=all; gives the base offset, ApiError if it was not stored.

        The local append happens before the first wait, so calls keep their order in the log.
        """
        ...

    def read(self, partition: int) -> Iterable[Batch]:
        """Every batch from the log start to the log end, committed or not."""
        ...


VerifyTransaction = Callable[[int, str, int, int], Awaitable[None]]
"""(partition of the offsets topic, transactional id, producer id, producer epoch).

ApiError unless the partition is part of that producer's ongoing transaction (KIP-890).
"""
