"""The topic in which a coordinator keeps its state, as the coordinators use it."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from broker.errors import ErrorCode
from broker.records.batch import Batch


class CoordinatorTopic(Protocol):
    """The partitions of `__consumer_offsets` or `__transaction_state` on this broker."""

    @property
    def num_partitions(self) -> int:
        """Partitions of the topic; those it will be created with while it does not exist."""
        ...

    async def append(self, partition: int, batch: bytes) -> int:
        """Append as leader with acks=all; returns the base offset, ApiError if it was not stored.

        The local append happens before the first wait, so calls keep their order in the log.
        """
        ...

    def read(self, partition: int) -> Iterable[Batch]:
        """Every batch from the log start to the log end, committed or not."""
        ...


APPEND_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""The error that a client of the coordinator gets when an append fails with the key.

Both coordinators add entries of their own: Kafka answers timeouts and oversized batches differently
for groups, commits and transactions.
"""
