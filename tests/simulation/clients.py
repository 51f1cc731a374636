"""Clients of a simulated cluster, which remember what they were promised.

Each runs as a process of its own until `is_finishing` is set, retries as real clients do, and
counts what it completed, so that a client that stands still is noticed.
"""

import asyncio
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition, Uuid
from broker.net.client import TRANSACTION, Client
from broker.protocol.codec import decode, encode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ResponseTopicPartition,
)
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from broker.records.batch import iterate_batches
from broker.records.builder import BatchSettings, build_batch
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.loop import Process

BACKOFF_S = 0.1
REQUEST_TIMEOUT_S = 5.0
SESSION_TIMEOUT_MS = 6000
TRANSACTION_TIMEOUT_MS = 15_000
MAX_POLL_BYTES = 1 << 20


class Violation(Exception):
    """A client saw something that must never happen."""


class SimulatedClient:
    """A process with a client; `run` is its work.

    Field `completed`: how many times it has done its work. `failure`: what ended it early.
    """

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.name = name
        self.cluster = cluster
        self.rng = random.Random(cluster.rng.getrandbits(64))
        self.process = Process(name)
        self.completed = 0
        self.is_finishing = False
        self.failure: BaseException | None = None
        self.is_done = asyncio.Event()
        self.client = Client(
            cluster.bootstrap_servers,
            client_id=name,
            request_timeout_s=REQUEST_TIMEOUT_S,
            connect_timeout_s=REQUEST_TIMEOUT_S,
        )

    def start(self) -> None:
        """Begin to work."""
        self.cluster.spawn(self.process, self._run())

    async def _run(self) -> None:
        try:
            await self.run()
            await self.client.close()
        except Exception as error:  # noqa: BLE001  # the checks raise it again
            self.failure = error
        self.is_done.set()

    async def run(self) -> None:
        """The work."""
        raise NotImplementedError

    async def pause(self) -> None:
        """Wait before trying again."""
        await asyncio.sleep(self.rng.uniform(BACKOFF_S / 2, BACKOFF_S * 2))


RETRIABLE = (ApiError, OSError)
"""What a request may fail with that can be sent again: a TimeoutError is an OSError."""


@dataclass
class SentBatch:
    """One batch of a producer; `offset` once it was acknowledged."""

    partition: TopicPartition
    values: list[bytes]
    offset: int | None = None


class IdempotentProducer(SimulatedClient):
    """Writes numbered values with acks=all, one batch in flight per partition.

    With one request in flight per partition an idempotent producer never loses, repeats or reorders
    a record, whatever happens: an OUT_OF_ORDER_SEQUENCE_NUMBER is a violation.
    """

    def __init__(
        self, cluster: SimulatedCluster, name: str, partitions: Iterable[TopicPartition]
    ) -> None:
        super().__init__(cluster, name)
        self._partitions = list(partitions)
        self.sent: list[SentBatch] = []
        """In the order in which they were first sent, per partition."""
        self.sent_to: dict[TopicPartition, list[SentBatch]] = {
            name: [] for name in self._partitions
        }
        """The same by partition."""
        self.longest_wait_s = 0.0
        """The longest time from sending a batch to its acknowledgement, retries included."""

    async def run(self) -> None:
        """Produce until `is_finishing` is set."""
        producer_id, epoch = await self._init()
        await asyncio.gather(
            *(self._produce_to(partition, producer_id, epoch) for partition in self._partitions)
        )

    async def _init(self) -> tuple[int, int]:
        while True:
            try:
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
                response = await self.client.send(request)
                if not response.error_code:
                    return response.producer_id, response.producer_epoch
            except RETRIABLE:
                pass
            await self.pause()

    async def _produce_to(self, partition: TopicPartition, producer_id: int, epoch: int) -> None:
        sequence = 0
        while not self.is_finishing:
            count = self.rng.randint(1, 4)
            values = [
                f"{self.name}/{partition.partition}/{sequence + i}".encode() for i in range(count)
            ]
            batch = SentBatch(partition, values)
            self.sent.append(batch)
            self.sent_to[partition].append(batch)
            settings = BatchSettings(
                producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
            )
            data = build_values(values, settings, self.cluster)
            began_s = self.cluster.loop.time()
            batch.offset = await self._send(partition, data)
            self.longest_wait_s = max(self.longest_wait_s, self.cluster.loop.time() - began_s)
            sequence += count
            self.completed += 1
            await asyncio.sleep(self.rng.uniform(0, 0.3))

    async def _send(self, partition: TopicPartition, data: bytes) -> int:
        while True:
            try:
                code, offset = await produce(self.client, partition, data)
            except RETRIABLE:
                await self.pause()
                continue
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                return offset
            if code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
                raise Violation(f"{self.name}: {partition}: {code.name}: an earlier batch is gone")
            if not code.retriable:
                raise Violation(f"{self.name}: {partition}: {code.name}")
            await self.pause()


@dataclass
class Transaction:
    """What one transaction wrote, and how it ended; `outcome` is None if unknown."""

    number: int
    values: dict[TopicPartition, bytes] = field(default_factory=dict)
    outcome: bool | None = None


class _Restart(Exception):
    """The producer has to begin again with InitProducerId; the transaction's end is unknown."""


class TransactionalProducer(SimulatedClient):
    """Writes to several partitions in transactions, and commits offsets of a group with them."""

    def __init__(
        self, cluster: SimulatedCluster, name: str, partitions: Iterable[TopicPartition]
    ) -> None:
        super().__init__(cluster, name)
        self._partitions = list(partitions)
        self.transactions: list[Transaction] = []
        self.group_id = f"group-of-{name}"
        self._producer_id = -1
        self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Run transactions until `is_finishing` is set; none is left halfway."""
        await self._init()
        while not self.is_finishing:
            transaction = Transaction(len(self.transactions))
            self.transactions.append(transaction)
            try:
                await self._run_transaction(transaction)
                self.completed += 1
            except _Restart:
                await self._init()
            await asyncio.sleep(self.rng.uniform(0, 0.5))

    async def _init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        while True:
            try:
                response = await self.client.send_to_coordinator(self.name, request, TRANSACTION)
                if not response.error_code:
                    self._producer_id = response.producer_id
                    self._epoch = response.producer_epoch
                    self._sequences = {}
                    return
                if not ErrorCode(response.error_code).retriable:
                    raise Violation(f"{self.name}: {ErrorCode(response.error_code).name}")
            except RETRIABLE:
                pass
            await self.pause()

    async def _run_transaction(self, transaction: Transaction) -> None:
        partitions = self.rng.sample(self._partitions, min(2, len(self._partitions)))
        await self._add(partitions)
        for partition in partitions:
            value = f"{self.name}/{transaction.number}/{partition.partition}".encode()
            transaction.values[partition] = value
            await self._produce(partition, value)
        if self.rng.random() < 0.5:
            await self._commit_offset(partitions[0], transaction.number)
        await self._end(transaction, commit=self.rng.random() < 0.7)

    async def _add(self, partitions: list[TopicPartition]) -> None:
        topics: dict[str, list[int]] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, []).append(partition.partition)
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=self.name,
                    producer_id=self._producer_id,
                    producer_epoch=self._epoch,
                    verify_only=False,
                    topics=[
                        AddPartitionsToTxnTopic(name=name, partitions=indexes)
                        for name, indexes in topics.items()
                    ],
                )
            ]
        )
        while True:
            try:
                response = await self.client.send_to_coordinator(self.name, request, TRANSACTION)
            except RETRIABLE:
                await self.pause()
                continue
            codes = {response.error_code} | {
                result.partition_error_code
                for transaction in response.results_by_transaction
                for topic in transaction.topic_results
                for result in topic.results_by_partition
            }
            if await self._is_done(codes):
                return

    async def _produce(self, partition: TopicPartition, value: bytes) -> None:
        sequence = self._sequences.get(partition, 0)
        settings = BatchSettings(
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = build_values([value], settings, self.cluster)
        while True:
            try:
                code, _ = await produce(self.client, partition, data, self.name)
            except RETRIABLE:
                await self.pause()
                continue
            if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER or await self._is_done({code}):
                self._sequences[partition] = sequence + 1
                return

    async def _commit_offset(self, partition: TopicPartition, offset: int) -> None:
        add = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            group_id=self.group_id,
        )
        commit = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.group_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=partition.topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition.partition,
                            committed_offset=offset,
                            committed_metadata=None,
                        )
                    ],
                )
            ],
        )
        while True:
            try:
                added = await self.client.send_to_coordinator(self.name, add, TRANSACTION)
                if not await self._is_done({added.error_code}):
                    continue
                committed = await self.client.send_to_coordinator(self.group_id, commit)
                (topic,) = committed.topics
                if await self._is_done({topic.partitions[0].error_code}):
                    return
            except RETRIABLE:
                await self.pause()

    async def _end(self, transaction: Transaction, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commit,
        )
        while True:
            try:
                response = await self.client.send_to_coordinator(self.name, request, TRANSACTION)
            except RETRIABLE:
                await self.pause()
                continue
            if await self._is_done({response.error_code}):
                transaction.outcome = commit
                return

    async def _is_done(self, codes: set[int]) -> bool:
        """True if all went well, False after a pause to try again; _Restart if fenced."""
        errors = {ErrorCode(code) for code in codes} - {ErrorCode.NONE}
        if not errors:
            return True
        if any(not error.retriable and error not in _TRY_AGAIN for error in errors):
            raise _Restart(str(errors))
        await self.pause()
        return False


_TRY_AGAIN = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.CONCURRENT_TRANSACTIONS})


class GroupConsumer(SimulatedClient):
    """A member of a consumer group: reads its partitions and commits what it has read.

    Field `commits`: acknowledged commits of the whole group, in order, shared by its members.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        name: str,
        group_id: str,
        partitions: Iterable[TopicPartition],
        commits: list[tuple[TopicPartition, int]],
    ) -> None:
        super().__init__(cluster, name)
        self._group_id = group_id
        self._all_partitions = list(partitions)
        self.commits = commits
        self._member_id = ""
        self._generation = -1

    async def run(self) -> None:
        """Join, read and commit, and join again, until `is_finishing` is set."""
        while not self.is_finishing:
            try:
                mine = await self._join()
                if mine is not None:
                    await self._consume(mine)
            except RETRIABLE:
                pass
            await self.pause()

    async def _join(self) -> list[TopicPartition] | None:
        topics = sorted({partition.topic for partition in self._all_partitions})
        subscription = encode(ConsumerProtocolSubscription(topics=topics), 0)
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=3000,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name="range", metadata=b"\0\0" + bytes(subscription))
            ],
        )
        joined = await self.client.send_to_coordinator(self._group_id, request)
        code = ErrorCode(joined.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return None
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
            return None
        if code:
            return None
        self._member_id, self._generation = joined.member_id, joined.generation_id
        members = sorted(member.member_id for member in joined.members)
        sync = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member,
                    assignment=_assignment(self._all_partitions[index :: len(members)]),
                )
                for index, member in enumerate(members)
            ],
        )
        synced = await self.client.send_to_coordinator(self._group_id, sync)
        if synced.error_code:
            self._maybe_forget_member(ErrorCode(synced.error_code))
            return None
        assigned = decode(ConsumerProtocolAssignment, synced.assignment[2:], 0)
        return [
            TopicPartition(topic.topic, index)
            for topic in assigned.assigned_partitions
            for index in topic.partitions
        ]

    async def _consume(self, mine: list[TopicPartition]) -> None:
        positions = await self._committed(mine)
        if positions is None:
            return
        while not self.is_finishing:
            for partition in mine:
                positions[partition] = await self._read(partition, positions[partition])
            if not await self._heartbeat() or not await self._commit(positions):
                return
            self.completed += 1
            await asyncio.sleep(self.rng.uniform(0.1, 0.6))

    async def _committed(self, mine: list[TopicPartition]) -> dict[TopicPartition, int] | None:
        offsets = await committed_offsets(self.client, self._group_id, mine)
        if offsets is None:
            return None
        return {partition: max(offset, 0) for partition, offset in offsets.items()}

    async def _read(self, partition: TopicPartition, position: int) -> int:
        try:
            data = await fetch(self.client, partition, position, isolation_level=0)
        except RETRIABLE:
            return position
        return data[-1][0] + 1 if data else position

    async def _heartbeat(self) -> bool:
        request = HeartbeatRequest(
            group_id=self._group_id, generation_id=self._generation, member_id=self._member_id
        )
        response = await self.client.send_to_coordinator(self._group_id, request)
        self._maybe_forget_member(ErrorCode(response.error_code))
        return not response.error_code

    async def _commit(self, positions: dict[TopicPartition, int]) -> bool:
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=partition.topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition.partition,
                            committed_offset=offset,
                            committed_metadata=None,
                        )
                    ],
                )
                for partition, offset in positions.items()
            ],
        )
        response = await self.client.send_to_coordinator(self._group_id, request)
        codes = {
            partition.error_code for topic in response.topics for partition in topic.partitions
        }
        if any(codes):
            self._maybe_forget_member(ErrorCode(max(codes)))
            return False
        self.commits.extend(positions.items())
        return True

    def _maybe_forget_member(self, code: ErrorCode) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._generation = -1
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""


# --- requests that several clients and the checks send -------------------------------------------


async def produce(
    client: Client, partition: TopicPartition, data: bytes, transactional_id: str | None = None
) -> tuple[ErrorCode, int]:
    """Write one batch with acks=all; its error code and base offset."""
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
        topic_data=[
            TopicProduceData(
                name=partition.topic,
                partition_data=[PartitionProduceData(index=partition.partition, records=data)],
            )
        ],
    )
    response = await client.send_to_leader(partition, request)
    answer = response.responses[0].partition_responses[0]
    return ErrorCode(answer.error_code), answer.base_offset


async def fetch(
    client: Client, partition: TopicPartition, offset: int, isolation_level: int
) -> list[tuple[int, bytes]]:
    """Offsets and values from `offset` on, as one Fetch returns them; control records left out.

    With isolation_level 1 those of aborted transactions are left out too. Ends with (offset, b"")
    of the last control record if nothing follows it, so that a reader can go on.
    """
    topic_id = await _topic_id(client, partition.topic)
    request = FetchRequest(
        max_wait_ms=200,
        min_bytes=1,
        max_bytes=MAX_POLL_BYTES,
        isolation_level=isolation_level,
        topics=[
            FetchTopic(
                topic=partition.topic,
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=partition.partition,
                        fetch_offset=offset,
                        partition_max_bytes=MAX_POLL_BYTES,
                    )
                ],
            )
        ],
    )
    response = await client.send_to_leader(partition, request)
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code))
    (answer,) = response.responses[0].partitions
    if answer.error_code:
        raise ApiError(ErrorCode(answer.error_code))
    aborted = sorted(
        (entry.first_offset, entry.producer_id) for entry in answer.aborted_transactions or ()
    )
    records = answer.records or b""
    assert isinstance(records, memoryview | bytes)
    return _visible(bytes(records), offset, aborted if isolation_level else [])


def _visible(data: bytes, offset: int, aborted: list[tuple[int, int]]) -> list[tuple[int, bytes]]:
    """Kafka's rule for read_committed, written down independently of kctl's readers."""
    aborting: set[int] = set()
    rows: list[tuple[int, bytes]] = []
    for batch in iterate_batches(data):
        header = batch.header
        while aborted and aborted[0][0] <= header.last_offset:
            aborting.add(aborted.pop(0)[1])
        if header.is_control:
            aborting.discard(header.producer_id)
            rows.append((header.last_offset, b""))
        elif header.is_transactional and header.producer_id in aborting:
            rows.append((header.last_offset, b""))
        else:
            rows += [(row[0], row[3] or b"") for row in batch.record_tuples() if row[0] >= offset]
    return rows


async def _topic_id(client: Client, topic: str) -> Uuid:
    response = await client.refresh_metadata([topic])
    return response.topics[0].topic_id


async def committed_offsets(
    client: Client, group_id: str, partitions: list[TopicPartition]
) -> dict[TopicPartition, int] | None:
    """Committed offsets, -1 where nothing was committed; None if unavailable now."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group_id,
                topics=[
                    OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ],
            )
        ],
        require_stable=True,
    )
    (group,) = (await client.send_to_coordinator(group_id, request)).groups
    found = {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in group.topics
        for partition in topic.partitions
    }
    if group.error_code or any(partition.error_code for partition in found.values()):
        return None
    return {name: partition.committed_offset for name, partition in found.items()}


def build_values(values: list[bytes], settings: BatchSettings, cluster: SimulatedCluster) -> bytes:
    """A batch of these values, with the time of a broker."""
    now_ms = cluster.brokers[1].clock.now_ms()
    return build_batch([(i, now_ms, None, value, ()) for i, value in enumerate(values)], settings)


def _assignment(partitions: list[TopicPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ResponseTopicPartition(topic=name, partitions=indexes)
            for name, indexes in topics.items()
        ]
    )
    return b"\0\0" + bytes(encode(message, 0))
