"""A running cluster as a source: offsets by ListOffsets, records by Fetch, over any Kafka.

How many bytes lie between two offsets no broker tells, so a partition is cut into equal spans of
offsets, as many as its size (DescribeLogDirs) asks for; who may not ask that gets an estimate.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition, Uuid
from broker.net.authentication import PLAINTEXT
from broker.net.client import Client
from broker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.records.batch import Batch, check_crc, iterate_batches
from kctl.admin.connection import CLIENT_ID, ask
from kctl.errors import CliError
from kctl.options import Session
from kctl.security.clients import client_security
from kctl.spark.plan import OffsetRange, Piece, split_evenly
from kctl.spark.settings import IsolationLevel, TaskSettings

Answer = TypeVar("Answer")

LATEST: Final = -1
EARLIEST: Final = -2
FETCH_BYTES: Final = 8 * 1024 * 1024
_MAX_WAIT_MS: Final = 500
_ASSUMED_RECORD_BYTES: Final = 1024
_READ_COMMITTED: Final = 1


class WireSource:
    """The partitions of a cluster."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sizes: dict[TopicPartition, int] = {}
        self._whole: dict[TopicPartition, OffsetRange] = {}

    def partitions(self) -> list[TopicPartition]:
        """Every partition there is."""
        answer = ask(self._session, lambda client: client.refresh_metadata(None))
        return sorted(
            TopicPartition(topic.name or "", partition.partition_index)
            for topic in answer.topics
            for partition in topic.partitions
        )

    def whole_ranges(
        self, partitions: Iterable[TopicPartition], *, is_committed: bool
    ) -> list[OffsetRange]:
        """All that is there of each partition, pinned now."""
        wanted = list(partitions)
        starts = self._offsets(wanted, EARLIEST, is_committed)
        ends = self._offsets(wanted, LATEST, is_committed)
        self._sizes = ask(self._session, _sizes)
        ranges = [OffsetRange(*each, min(starts[each], ends[each]), ends[each]) for each in wanted]
        self._whole = {each.topic_partition: each for each in ranges}
        return ranges

    def offsets_at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """Of each partition the first offset of that time or later; its end if there is none."""
        found = self._offsets(list(partitions), timestamp, is_committed=False)
        return {
            each: self._whole[each].end_offset if offset < 0 else offset
            for each, offset in found.items()
        }

    def pieces(self, offsets: OffsetRange, task_bytes: int) -> Iterator[Piece]:
        """The range as equal spans of offsets, of about `task_bytes` each."""
        whole = self._whole[offsets.topic_partition]
        count = offsets.end_offset - offsets.first_offset
        size = self._sizes.get(offsets.topic_partition, count * _ASSUMED_RECORD_BYTES)
        share = count / max(1, whole.end_offset - whole.first_offset)
        yield from split_evenly(offsets, round(size * share), task_bytes)

    def _offsets(
        self, partitions: list[TopicPartition], timestamp: int, is_committed: bool
    ) -> dict[TopicPartition, int]:
        return ask(
            self._session,
            lambda client: _list_offsets(client, partitions, timestamp, is_committed),
        )


async def _list_offsets(
    client: Client, partitions: list[TopicPartition], timestamp: int, is_committed: bool
) -> dict[TopicPartition, int]:
    """Ask the leaders; CliError for a partition without one."""
    found: dict[TopicPartition, int] = {}
    for leader, led in (await client.leaders_of(partitions)).items():
        if leader < 0:
            raise CliError(
                f"{led[0]} has no leader at present", "kctl spark-export reads from leaders"
            )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=_READ_COMMITTED if is_committed else 0,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=each.partition, timestamp=timestamp)
                        for each in led
                        if each.topic == topic
                    ],
                )
                for topic in sorted({each.topic for each in led})
            ],
        )
        for topic in (await client.send_to(leader, request)).topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.partition_index)
                if answer.error_code:
                    raise ApiError(ErrorCode(answer.error_code), str(partition))
                found[partition] = answer.offset
    return found


async def _sizes(client: Client) -> dict[TopicPartition, int]:
    """Bytes of each partition, by its largest replica; nothing of brokers that do not tell."""
    answers = await client.send_to_all(DescribeLogDirsRequest(topics=None))
    sizes: dict[TopicPartition, int] = {}
    for answer in answers.values():
        if isinstance(answer, DescribeLogDirsResponse):
            for name, partition in (
                (topic.name, partition)
                for result in answer.results
                for topic in result.topics
                for partition in topic.partitions
            ):
                key = TopicPartition(name, partition.partition_index)
                sizes[key] = max(sizes.get(key, 0), partition.partition_size)
    return sizes


# --- in a task ---------------------------------------------------------------------------------


def read_piece(
    piece: Piece, settings: TaskSettings
) -> Iterator[tuple[Iterator[Batch], list[tuple[int, int]]]]:
    """The batches of a span of offsets, answer by answer, each with what was aborted in it.

    The next answer is on its way while one is worked on.
    """
    with _Fetcher(piece, settings) as fetcher:
        coming = fetcher.begin(piece.first_offset)
        offset = piece.first_offset
        while offset < piece.end_offset:
            data = coming.result()
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
            yield _checked(batches), [(txn.producer_id, txn.first_offset) for txn in aborted]


def _checked(batches: list[Batch]) -> Iterator[Batch]:
    for batch in batches:
        check_crc(batch)
        yield batch


class _Fetcher:
    """Fetches from the leader of one partition, in a thread with an event loop of its own."""

    def __init__(self, piece: Piece, settings: TaskSettings) -> None:
        self._piece = piece
        self._settings = settings
        self._topic_id = Uuid.ZERO
        self._thread = ThreadPoolExecutor(1, "fetch")
        self._runner = asyncio.Runner()
        self._client = Client(
            settings.bootstrap_servers,
            client_id=CLIENT_ID,
            request_timeout_s=settings.timeout_s,
            security=PLAINTEXT if settings.security is None else client_security(settings.security),
        )

    def __enter__(self) -> "_Fetcher":
        answer = self._run(lambda: self._client.refresh_metadata([self._piece.topic])).result()
        self._topic_id = answer.topics[0].topic_id
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._client.close).result()
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()

    def begin(self, offset: int) -> "Future[PartitionData]":
        """Send for the batches from `offset` on."""
        return self._run(lambda: self._fetch(offset))

    def _run(self, make: Callable[[], Coroutine[Any, Any, Answer]]) -> "Future[Answer]":
        return self._thread.submit(lambda: self._runner.run(make()))

    async def _fetch(self, offset: int) -> PartitionData:
        """The answer for `offset`; asked again while the broker has nothing, until time is up."""
        partition = TopicPartition(self._piece.topic, self._piece.partition)
        async with asyncio.timeout(self._settings.timeout_s):
            while True:
                response = await self._client.send_to_leader(partition, self._request(offset))
                if response.error_code:
                    raise ApiError(ErrorCode(response.error_code), str(partition))
                data = response.responses[0].partitions[0]
                if data.error_code:
                    raise ApiError(
                        ErrorCode(data.error_code), f"{partition} from offset {offset} on"
                    )
                if data.records:
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
