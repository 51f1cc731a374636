"""Interfaces of the coordinator to the rest of the broker."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from broker.errors import ErrorCode
from broker.model import TopicPartition


class TxnMarker(NamedTuple):
    """The control record that ends a transaction in each of its partitions."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool


class MarkerChannel(Protocol):
    """Sends markers to the leaders of partitions, on this broker and on others."""

    def has_partition(self, partition: TopicPartition) -> bool:
        """Whether the partition exists; after its topic was deleted it needs no marker."""
        ...

    async def write_markers(
        self, marker: TxnMarker, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Append the marker with acks=all; returns the error code of every partition."""
        ...


class ProducerIdBlock(NamedTuple):
    """A range of producer ids, allocated to this broker alone."""

    first_producer_id: int
    last_producer_id: int


class ProducerIdBlocks(Protocol):
    """Source of producer id blocks."""

    async def allocate(self) -> ProducerIdBlock:
        """Allocate a block; ApiError if that is not possible now. No id is ever allocated twice."""
        ...
