"""A running cluster as a source: offsets by ListOffsets, records by Fetch.

Brokers do not report the number of bytes between two offsets, so a partition is split into equal
ranges of offsets, as many as its size (DescribeLogDirs) requires. Without permission for that API
the size is estimated.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, Final, TypeVar

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition, Uuid
from broker.net.authentication import PLAINTEXT
from broker.net.client import Client
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from broker.protocol.messages.metadata import MetadataResponse
from broker.records.batch import Batch, check_crc, iterate_batches
from kctl.admin.connection import CLIENT_ID, ask
from kctl.admin.leader_epochs import epoch_end_offsets
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.log_offsets import list_offsets, log_ends, log_starts
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.cli.security.clients import client_security
from kctl.spark.planning.origin import Origin
from kctl.spark.planning.plan import OffsetRange, Piece, split_evenly
from kctl.spark.planning.settings import IsolationLevel, TaskSettings
from kctl.spark.reading.aborted_transactions import UNKNOWN_END

Answer = TypeVar("Answer")

FETCH_BYTES: Final = 8 * 1024 * 1024
_MAX_WAIT_MS: Final = 500
_ASSUMED_RECORD_BYTES: Final = 1024
_READ_COMMITTED: Final = 1


class ClusterSource:
    """The partitions of a cluster.

    `_whole`: the ranges that were pinned. `_sizes`: bytes by partition, if brokers reported them.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sizes: dict[TopicPartition, int] = {}
        self._whole: dict[TopicPartition, OffsetRange] = {}

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
        starts, ends, self._sizes = ask(
            self._session, lambda client: _bounds(client, wanted, is_committed)
        )
        if missing := [each for each in wanted if each not in starts or each not in ends]:
            raise CliError(
                f"{missing[0]} has no leader at present", "kctl spark-export reads from leaders"
            )
        ranges = [OffsetRange(*each, min(starts[each], ends[each]), ends[each]) for each in wanted]
        self._whole = {each.topic_partition: each for each in ranges}
        return ranges

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
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Log start offsets, visible ends and sizes in bytes."""
    return (
        await log_starts(client, partitions),
        await log_ends(client, partitions, read_committed=is_committed),
        await _sizes(client),
    )


async def _sizes(client: Client) -> dict[TopicPartition, int]:
    """Size of each partition by its largest replica; empty if brokers do not report sizes."""
    try:
        directories = await describe_log_dirs(client)
    except (CliError, ApiError):  # not allowed, or a broker is down: sizes are only an estimate
        return {}
    sizes: dict[TopicPartition, int] = {}
    for replica in (each for directory in directories for each in directory.replicas):
        sizes[replica.partition] = max(sizes.get(replica.partition, 0), replica.size_bytes)
    return sizes


# --- in a task ---------------------------------------------------------------------------------


def read_piece(
    piece: Piece, settings: TaskSettings
) -> Iterator[tuple[Iterator[Batch], list[tuple[int, int, int]]]]:
    """The batches of a piece, response by response, each with its aborted transactions.

    The next fetch is in flight while a response is processed.
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
            yield (
                _checked(batches),
                [(txn.producer_id, txn.first_offset, UNKNOWN_END) for txn in aborted],
            )


def _checked(batches: list[Batch]) -> Iterator[Batch]:
    for batch in batches:
        check_crc(batch)
        yield batch


class _Fetcher:
    """Fetches from the leader of one partition, in a thread with its own event loop."""

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
        """Start a fetch from `offset`."""
        return self._run(lambda: self._fetch(offset))

    def _run(self, make: Callable[[], Coroutine[Any, Any, Answer]]) -> "Future[Answer]":
        return self._thread.submit(lambda: self._runner.run(make()))

    async def _fetch(self, offset: int) -> PartitionData:
        """The response for `offset`; repeated while it is empty, until the timeout."""
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
