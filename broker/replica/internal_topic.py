"""A topic that a coordinator keeps its state in: appended to with acks=all, read back whole."""

import asyncio
from collections.abc import Iterator

from broker.errors import ApiError, ErrorCode
from broker.log.append import AppendOrigin
from broker.log.offsets import FetchIsolation
from broker.metadata_cache import MetadataCache
from broker.records.batch import Batch, iterate_batches
from broker.replica.delayed import Ticket
from broker.replica.manager import ReplicaManager
from broker.replica.partition import Partition

_ALL = -1
_READ_BYTES = 5 * 1024 * 1024


class InternalTopic:
    """The partitions of one internal topic, as far as this broker leads them."""

    def __init__(
        self,
        name: str,
        planned_partitions: int,
        append_timeout_ms: int,
        replicas: ReplicaManager,
        metadata: MetadataCache,
    ) -> None:
        self.name = name
        self._planned_partitions = planned_partitions
        self._append_timeout_s = append_timeout_ms / 1000
        self._replicas = replicas
        self._metadata = metadata

    @property
    def num_partitions(self) -> int:
        """Of the topic; while there is none, as many as it will have."""
        topic = self._metadata.topics.get(self.name)
        return self._planned_partitions if topic is None else len(topic.partitions)

    async def append(self, partition: int, batch: bytes) -> int:
        """Append and wait for the ISR; gives the base offset, ApiError if it was not stored.

        It is in the local log before the first wait. REQUEST_TIMED_OUT leaves open what became
        of it.
        """
        led = self._replicas.find(self.name, partition)
        info = led.append_as_leader(batch, _ALL, AppendOrigin.COORDINATOR)
        code = led.acks_reached(info.last_offset + 1)
        if code is None:
            code = await self._acknowledged(led, info.last_offset + 1)
        if code is not ErrorCode.NONE:
            raise ApiError(code, f"{led.name}: offset {info.first_offset} is not replicated")
        return info.first_offset

    async def _acknowledged(self, partition: Partition, offset: int) -> ErrorCode:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._append_timeout_s
        while (code := partition.acks_reached(offset)) is None:
            with Ticket([partition.moves]) as ticket:
                if not await ticket.moved(deadline - loop.time()):
                    return ErrorCode.REQUEST_TIMED_OUT
        return code

    def read(self, partition: int) -> Iterator[Batch]:
        """Every batch from the log start to the log end as it is now, committed or not."""
        log = self._replicas.find(self.name, partition).log
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            found = log.read(offset, _READ_BYTES, FetchIsolation.LOG_END, min_one_message=True)
            if found.records is None:
                return
            for batch in iterate_batches(found.records.read()):
                offset = batch.header.next_offset
                yield batch
