"""An internal topic, as the coordinators use it: append with acks=all, read everything."""

from collections.abc import Iterator

from broker.errors import ApiError, ErrorCode
from broker.log.append import AppendOrigin
from broker.metadata_cache import MetadataCache
from broker.records.batch import Batch, read_header
from broker.replica.delayed_operations import DelayedProduce, RequiredOffset
from broker.replica.manager import ReplicaManager


class InternalTopic:
    """The partitions of `__consumer_offsets` or `__transaction_state` on this broker."""

    def __init__(
        self,
        name: str,
        default_partitions: int,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        timeout_ms: int = 5_000,
    ) -> None:
        self.name = name
        self._default_partitions = default_partitions
        self._replicas = replicas
        self._metadata = metadata
        self._timeout_s = timeout_ms / 1000

    @property
    def num_partitions(self) -> int:
        """The number of partitions; before the topic exists, the number it will have."""
        topic = self._metadata.topics.get(self.name)
        return self._default_partitions if topic is None else len(topic.partitions)

    async def append(self, partition: int, batch: bytes) -> int:
        """Append with acks=all; returns the base offset, ApiError if it was not replicated.

        The local append happens before the first await, so calls keep their order in the log.
        """
        replica = self._replicas.find(self.name, partition)
        header = read_header(batch)
        # Offsets of a transaction: the group coordinator has verified the transaction already.
        verification = (
            replica.log.start_verification(
                header.producer_id, header.base_sequence, header.producer_epoch
            )
            if header.is_transactional
            else None
        )
        info = replica.append_as_leader(
            batch, origin=AppendOrigin.COORDINATOR, verification=verification
        )
        required = RequiredOffset(replica, info.last_offset + 1)
        await DelayedProduce([required], self._timeout_s, self._replicas.purgatory)
        code = replica.acks_reached(required.offset)
        if code is None:
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT, f"{replica.name}: the ISR did not replicate in time"
            )
        if code != ErrorCode.NONE:
            raise ApiError(code)
        return info.first_offset

    def read(self, partition: int) -> Iterator[Batch]:
        """Every batch from the log start to the log end, committed or not."""
        log = self._replicas.find(self.name, partition).log
        for segment in log.segments:
            for _, batch in segment.log.batches():
                yield batch
