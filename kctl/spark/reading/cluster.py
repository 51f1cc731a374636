"""A running cluster as a source: offsets by ListOffsets, records by Fetch.

Brokers do not report the number of bytes between two offsets, so a partition is split into equal
ranges of offsets, as many as its size (DescribeLogDirs) requires. Without permission for that API
the size is estimated.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Final, TypeVar

from broker.errors import ApiError, ErrorCode, OffsetOutOfRange
from broker.model import TopicPartition, Uuid
from broker.net.authentication import PLAINTEXT
from broker.net.client import Client
from broker.net.failures import ConnectionFailed, SecurityFailed
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from broker.protocol.messages.metadata import MetadataResponse
from broker.records.batch import Batch, check_crc, iterate_batches
from kctl.admin.connection import CLIENT_ID, ask
from kctl.admin.leader_epochs import epoch_end_offsets
from kctl.admin.log_dirs import partition_sizes
from kctl.admin.log_offsets import list_offsets, log_ends, log_starts
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.cli.security.clients import client_security
from kctl.spark.planning.origin import Origin
from kctl.spark.planning.plan import OffsetRange, Piece, split_evenly
from kctl.spark.planning.settings import IsolationLevel, TaskSettings
from kctl.spark.reading.aborted_transactions import UNKNOWN_END
from kctl.spark.reading.gaps import Gaps

Answer = TypeVar("Answer")
Offsets = dict[TopicPartition, int]

FETCH_BYTES: Final = 8 * 1024 * 1024
_MAX_WAIT_MS: Final = 500
_ASSUMED_RECORD_BYTES: Final = 1024
_READ_COMMITTED: Final = 1
_RECONNECT_S: Final = 0.3


class ClusterSource:
    """The partitions of a cluster.

    `_whole`: the ranges that were pinned, of committed records alone if `_is_committed`.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._whole: dict[TopicPartition, OffsetRange] = {}
        self._is_committed = True

    @cached_property
    def _metadata(self) -> MetadataResponse:
        return ask(self._session, lambda client: client.refresh_metadata(None))

    def partitions(self) -> list[TopicPartition]:
        """Every partition of the cluster."""
        return sorted(
            TopicPartition(topic.name or "", partition.partition_index)
            for topic in self._metadata.topics
            for partition in topic.partitions
        )

    def whole_ranges(
        self, partitions: Iterable[TopicPartition], *, is_committed: bool
    ) -> list[OffsetRange]:
        """The offsets of each partition from log start to the end that a reader sees, pinned."""
        wanted = list(partitions)
        starts, ends = ask(self._session, lambda client: _bounds(client, wanted, is_committed))
        if missing := [each for each in wanted if each not in starts or each not in ends]:
            raise CliError(
                f"{missing[0]} has no leader at present", "kctl spark-export reads from leaders"
            )
        ranges = [OffsetRange(*each, min(starts[each], ends[each]), ends[each]) for each in wanted]
        self.pin(ranges, is_committed=is_committed)
        return ranges

    def pin(self, ranges: Iterable[OffsetRange], *, is_committed: bool) -> None:
        """Use ranges that were found before, without asking for them again."""
        self._whole = {each.topic_partition: each for each in ranges}
        self._is_committed = is_committed
        self.__dict__.pop("_sizes", None)

    @cached_property
    def _sizes(self) -> dict[TopicPartition, int]:
        """Bytes by partition; empty if brokers do not report them."""
        leaders = {
            each: partition.leader_id
            for topic in self._metadata.topics
            for partition in topic.partitions
            if (each := TopicPartition(topic.name or "", partition.partition_index)) in self._whole
            and partition.leader_id >= 0
        }
        try:
            return ask(self._session, lambda client: partition_sizes(client, leaders))
        except (CliError, ApiError):  # not allowed, or a broker is down: only an estimate
            return {}

    def offsets_at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition at that time or later; else its end."""
        wanted = dict.fromkeys(partitions, timestamp)
        found = ask(self._session, lambda client: list_offsets(client, wanted))
        return {
            each: found[each].offset
            if each in found and found[each].offset >= 0
            else self._whole[each].end_offset
            for each in wanted
        }

    def origin(self, partitions: Iterable[TopicPartition]) -> Origin:
        """The ids and leader epochs in the metadata of the cluster."""
        wanted = set(partitions)
        topics = [topic for topic in self._metadata.topics if topic.name]
        return Origin(
            self._metadata.cluster_id,
            {t.name: str(t.topic_id) for t in topics if t.name and t.topic_id != Uuid.ZERO},
            {
                str(each): partition.leader_epoch
                for topic in topics
                for partition in topic.partitions
                if (each := TopicPartition(topic.name or "", partition.partition_index)) in wanted
                and partition.leader_epoch >= 0
            },
        )

    def held_back(self, ranges: Iterable[OffsetRange]) -> dict[TopicPartition, int]:
        """How many offsets lie between the last stable offset and the high watermark.

        A partition whose last stable offset has moved since the ranges were pinned is omitted.
        """
        ends = {
            each.topic_partition: each.end_offset
            for each in ranges
            if each.end_offset == self._whole[each.topic_partition].end_offset
        }
        if not self._is_committed or not ends:
            return {}
        stable, high_watermarks = ask(self._session, lambda client: _visible_ends(client, ends))
        return {
            partition: high_watermarks[partition] - end
            for partition, end in ends.items()
            if stable.get(partition) == end and high_watermarks.get(partition, end) > end
        }

    def epoch_end_offsets(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The end offsets of leader epochs; omitted if a leader does not report them."""
        try:
            return ask(self._session, lambda client: epoch_end_offsets(client, epochs))
        except CliError:  # not allowed, or a broker older than 0.11: offsets are compared anyway
            return {}

    def pieces(self, offsets: OffsetRange, task_bytes: int) -> Iterator[Piece]:
        """Split a range into equal ranges of offsets, of about `task_bytes` each."""
        whole = self._whole[offsets.topic_partition]
        count = offsets.end_offset - offsets.first_offset
        size = self._sizes.get(offsets.topic_partition, count * _ASSUMED_RECORD_BYTES)
        share = count / max(1, whole.end_offset - whole.first_offset)
        yield from split_evenly(offsets, round(size * share), task_bytes)


async def _bounds(
    client: Client, partitions: list[TopicPartition], is_committed: bool
) -> tuple[Offsets, Offsets]:
    """Log start offsets and visible ends."""
    return (
        await log_starts(client, partitions),
        await log_ends(client, partitions, read_committed=is_committed),
    )


async def _visible_ends(
    client: Client, partitions: Iterable[TopicPartition]
) -> tuple[Offsets, Offsets]:
    """Last stable offsets and high watermarks."""
    wanted = list(partitions)
    # The high watermark last: a transaction that ends meanwhile is not held back.
    return await log_ends(client, wanted, read_committed=True), await log_ends(client, wanted)


# --- in a task ---------------------------------------------------------------------------------


def read_piece(
    piece: Piece, settings: TaskSettings, gaps: Gaps
) -> Iterator[tuple[Iterator[Batch], list[tuple[int, int, int]]]]:
    """The batches of a piece, response by response, each with its aborted transactions.

    The next fetch is in flight while a response is processed.
    """
    with shared_client(settings) as client:
        fetcher = _Fetcher(client, piece, settings)
        offset = piece.first_offset
        coming = fetcher.begin(offset)
        while offset < piece.end_offset:
            try:
                data = coming.result()
            except OffsetOutOfRange:
                offset = fetcher.skip_deleted(offset, gaps)
                if offset < piece.end_offset:
                    coming = fetcher.begin(offset)
                continue
            batches = list(iterate_batches(memoryview(data.records or b"")))  # type: ignore[arg-type]
            if not batches:
                raise TimeoutError(
                    f"{piece.topic}-{piece.partition}: no records from offset {offset} on "
                    f"within {settings.timeout_s:g} s"
                )
            offset = batches[-1].next_offset
            if offset < piece.end_offset:
                coming = fetcher.begin(offset)
            aborted = data.aborted_transactions or []
            yield (
                _checked(batches),
                [(txn.producer_id, txn.first_offset, UNKNOWN_END) for txn in aborted],
            )


def _checked(batches: list[Batch]) -> Iterator[Batch]:
    for batch in batches:
        check_crc(batch)
        yield batch


class TaskClient:
    """A client in a thread with its own event loop, for code that is not asynchronous."""

    def __init__(self, settings: TaskSettings) -> None:
        self.topic_ids: dict[str, Uuid] = {}
        """Topic ids from metadata, by topic."""
        self.client = Client(
            settings.bootstrap_servers,
            client_id=CLIENT_ID,
            request_timeout_s=settings.timeout_s,
            security=PLAINTEXT if settings.security is None else client_security(settings.security),
        )
        self._timeout_s = settings.timeout_s
        self._thread = ThreadPoolExecutor(1, "fetch")
        self._runner = asyncio.Runner()

    def run(self, make: Callable[[], Coroutine[Any, Any, Answer]]) -> "Future[Answer]":
        """Start a coroutine in the thread, and repeat it while brokers cannot be reached."""
        return self._thread.submit(lambda: self._runner.run(self._patiently(make)))

    async def _patiently(self, make: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Repeat while no broker can be reached: a broker may be restarting."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_s
        while True:
            try:
                return await make()
            except SecurityFailed:
                raise
            except ConnectionFailed:
                if loop.time() + _RECONNECT_S > deadline:
                    raise
                await asyncio.sleep(_RECONNECT_S)

    def topic_id(self, topic: str) -> Uuid:
        """The id of a topic; its leaders are known then, too."""
        if topic not in self.topic_ids:
            answer = self.run(lambda: self.client.refresh_metadata([topic])).result()
            self.topic_ids[topic] = answer.topics[0].topic_id
        return self.topic_ids[topic]

    def close(self) -> None:
        """Close the connections and end the thread."""
        self._thread.submit(lambda: self._runner.run(self.client.close())).result()
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


_shared: ContextVar[TaskClient | None] = ContextVar("shared_client", default=None)


@contextmanager
def shared_client(settings: TaskSettings) -> Iterator[TaskClient]:
    """A client for the block. Blocks inside it use the same one: a task with 200 small partitions
    opens its connections once. It connects when it is first used."""
    if (known := _shared.get()) is not None:
        yield known
        return
    client = TaskClient(settings)
    _shared.set(client)
    try:
        yield client
    finally:
        _shared.set(None)
        client.close()


class _Fetcher:
    """Fetches from the leader of one partition."""

    def __init__(self, client: TaskClient, piece: Piece, settings: TaskSettings) -> None:
        self._client = client
        self._piece = piece
        self._settings = settings
        self._partition = TopicPartition(piece.topic, piece.partition)
        self._topic_id = client.topic_id(piece.topic)

    def begin(self, offset: int) -> "Future[PartitionData]":
        """Start a fetch from `offset`."""
        return self._client.run(lambda: self._fetch(offset))

    def skip_deleted(self, offset: int, gaps: Gaps) -> int:
        """The offset to go on at, after `offset` was found to be out of range."""
        client = self._client.client
        starts = self._client.run(lambda: log_starts(client, [self._partition])).result()
        start = min(starts.get(self._partition, -1), self._piece.end_offset)
        if start <= offset:
            raise CliError(
                f"{self._partition}: offset {offset} is beyond the end of the log, which was "
                "truncated during the export (OFFSET_OUT_OF_RANGE)"
            )
        gaps.note(self._partition, offset, start)
        return start

    async def _fetch(self, offset: int) -> PartitionData:
        """The response for `offset`; repeated while it is empty, until the timeout."""
        async with asyncio.timeout(self._settings.timeout_s):
            while True:
                request = self._request(offset)
                response = await self._client.client.send_to_leader(self._partition, request)
                data = response.responses[0].partitions[0] if response.responses else None
                code = ErrorCode(response.error_code or (data.error_code if data else 0))
                if code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise OffsetOutOfRange(f"{self._partition} offset {offset}")
                if code:
                    raise ApiError(code, f"{code.name}: {self._partition} from offset {offset} on")
                if data is not None and data.records:
                    return data

    def _request(self, offset: int) -> FetchRequest:
        wanted = FetchPartition(
            partition=self._piece.partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
        )
        topic = FetchTopic(topic=self._piece.topic, topic_id=self._topic_id, partitions=[wanted])
        is_committed = self._settings.isolation is IsolationLevel.READ_COMMITTED
        return FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=_READ_COMMITTED if is_committed else 0,
            topics=[topic],
        )
