"""What the coordinator asks of the rest of the broker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.records.batch import Batch


class TransactionTopic(Protocol):
    """The partitions of `__transaction_state` on this broker."""

    @property
    def num_partitions(self) -> int:
        """Of the topic; while there is none, `transaction.state.log.num.partitions`."""
        ...

    async def append(self, partition: int, batch: bytes) -> int:
        """Append as leader with acks=all; gives the base offset, ApiError if it was not stored.

        The local append happens before the first wait, so calls keep their order in the log.
        """
        ...

    def read(self, partition: int) -> Iterable[Batch]:
        """Every batch from the log start to the log end, committed or not."""
        ...


class TxnMarker(NamedTuple):
    """How a transaction ended; what leaders are asked to write into its partitions."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool


class MarkerChannel(Protocol):
    """The way to the leaders of a transaction's partitions, here and on other brokers."""

    def has_partition(self, partition: TopicPartition) -> bool:
        """Whether the cluster has it; False after its topic was deleted: no marker is owed."""
        ...

    async def write_markers(
        self, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Have the marker appended with acks=all; what became of it, for every partition."""
        ...


class ProducerIdBlock(NamedTuple):
    """Producer ids that this broker may give away; nobody else ever gets them."""

    first_producer_id: int
    last_producer_id: int


class ProducerIdBlocks(Protocol):
    """Where blocks of producer ids come from."""

    async def allocate(self) -> ProducerIdBlock:
        """A block that was never given to anybody; ApiError if there is none to be had now."""
        ...
