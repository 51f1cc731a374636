"""A topic of the broker's own, as its coordinators use it: append with acks=all, read it all."""

from collections.abc import Iterator

from broker.errors import ApiError, ErrorCode
from broker.log.append import AppendOrigin
from broker.metadata_cache import MetadataCache
from broker.records.batch import Batch, read_header
from broker.replica.acks import wait_for_acks
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
        """Of the topic; while there is none, what it will have."""
        topic = self._metadata.topics.get(self.name)
        return self._default_partitions if topic is None else len(topic.partitions)

    async def append(self, partition: int, batch: bytes) -> int:
        """Append with acks=all; gives the base offset, ApiError if it was not stored.

        The local append happens before the first wait, so calls keep their order in the log.
        """
        replica = self._replicas.find(self.name, partition)
        header = read_header(batch)
        # Offsets of a transaction: the group coordinator has asked about it before it came here.
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
        required = info.last_offset + 1
        await wait_for_acks([(replica, required)], self._timeout_s)
        code = replica.acks_reached(required)
        if code is None:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{replica.name}: replicas did not follow")
        if code != ErrorCode.NONE:
            raise ApiError(code)
        return info.first_offset

    def read(self, partition: int) -> Iterator[Batch]:
        """Every batch from the log start to the log end, committed or not."""
        log = self._replicas.find(self.name, partition).log
        for segment in log.segments:
            for _, batch in segment.log.batches():
                yield batch
