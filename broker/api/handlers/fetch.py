"""Handle Fetch: send record batches, unchanged from the files, to consumers and followers.

A follower's fetch offset tells the leader that the follower has everything below it, which is how
the high watermark advances. If the follower's log diverges from the leader's, the response names
the point of divergence and contains no records (KIP-595).

Limits: `partition_max_bytes` per partition, `max_bytes` per request, `fetch.max.bytes` per broker.
From version 3 on the first batch is always sent whole, however large, so that no consumer gets
stuck behind it. If there are fewer than `min_bytes`, the request waits for the partitions to grow,
at most `max_wait_ms`. It does not wait if

- a partition has an error, a diverging epoch, or a preferred read replica;
- a fetch offset lies on an older segment than the end that the client may read, or beyond that end
  (unless the follower is throttled): no more bytes may ever arrive there.

Clients of old versions get old formats: magic 0 up to version 1, magic 1 up to version 3. Only then
are records decoded here. Clients below version 10 cannot read zstd.

Versions:
    v1 throttle time
    v2 message format 1 (KIP-32)
    v3 max_bytes of the whole response (KIP-74)
    v4 isolation level, aborted transactions; message format 2 (KIP-98)
    v5 log start offset (KIP-107)
    v6 KAFKA_STORAGE_ERROR (KIP-112)
    v7 sessions (KIP-227)
    v8 clients wait out a throttle time themselves, after the response (KIP-219)
    v9 fencing by leader epoch (KIP-320)
    v10 zstd (KIP-110)
    v11 fetch from the closest replica (KIP-392)
    v12 flexible; truncation by the last fetched epoch (KIP-595)
    v13 topic ids (KIP-516)
    v14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)
    v15 replica state with broker epoch (KIP-903)
    v16 the new leader with NOT_LEADER_OR_FOLLOWER (KIP-951)
    v17 directory ids (KIP-853)

Deliberately missing: tiered storage, directory ids (KRaft only).
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from broker.api.authorization import is_authorized_on_cluster, unauthorized
from broker.api.context import RequestContext
from broker.api.fetch_session import NO_SESSION, FetchPlan, FetchSessionPartition
from broker.api.leaders import current_leader, leader_endpoints
from broker.api.read_replicas import preferred_read_replica
from broker.errors import ApiError, ErrorCode
from broker.log.offsets import (
    HIGH_WATERMARK,
    LOG_END,
    TXN_COMMITTED,
    FetchData,
    FetchIsolation,
)
from broker.metrics.topic_stats import TopicStats
from broker.model import Uuid
from broker.net.deferred import DeferredResponse
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from broker.protocol.primitives import Records
from broker.records.batch import iterate_batches
from broker.records.convert import down_convert, needs_down_conversion
from broker.records.layout import CURRENT_MAGIC
from broker.replica.delayed_operations import DelayedFetch
from broker.replica.in_sync import RemoteReplica
from broker.replica.partition import Partition
from broker.security.acls import AclOperation

_READ_COMMITTED: Final = 1
_NO_RECORDS: Final = b""
_UNREAD: Final = FetchData(None)
_UNREAD_COMMITTED: Final = FetchData(None, aborted_transactions=[])
"""For a partition that is not read because the response is full."""
_MAGIC_BY_VERSION: Final = {0: 0, 1: 0, 2: 1, 3: 1}
_FIRST_VERSION_OF_WHOLE_BATCHES: Final = 3
_FIRST_VERSION_OF_ZSTD: Final = 10
_PARTITION_BYTES: Final = 60
"""Approximate size of a partition in a response, without its records."""
_ZSTD: Final = "zstd"
"""The compression.type of topics that clients of older versions cannot read."""
_FIRST_VERSION_OF_PREFERRED_REPLICA: Final = 11
_FIRST_VERSION_OF_CURRENT_LEADER: Final = 12
_FIRST_VERSION_OF_ENDPOINTS: Final = 16
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_NOT_READ: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


def handle(
    request: FetchRequest, context: RequestContext
) -> FetchResponse | DeferredResponse[FetchResponse]:
    """Read what is available; wait if that is less than `min_bytes`."""
    services, now_s = context.services, asyncio.get_running_loop().time()
    try:
        plan = services.fetch_sessions.plan(request, context.api_version, now_s)
    except ApiError as error:
        return FetchResponse(error_code=error.code)
    session = plan.session
    session.last_fetch_ms = services.clock.now_ms()
    fetch = _Fetch(request, plan, context, now_s)
    if services.authorizer is not None:
        fetch.authorize()
    if fetch.read_pending() or request.max_wait_ms <= 0 or not session.partitions:
        return fetch.respond()
    return fetch.wait()


class _Fetch:
    """One request from its first read to its response.

    Field `isolation`: how far the client may read.
    Field `only_leader`: only the leader may serve the client. Consumers whose version knows
    preferred read replicas may read from a follower (KIP-392).
    Field `data`: what was read so far. Invariant: up to date, except for pending partitions.
    Field `denied`: partitions that the client may not read.
    """

    __slots__ = (
        "context",
        "data",
        "deadline_s",
        "denied",
        "is_incremental",
        "isolation",
        "max_bytes",
        "min_bytes",
        "only_leader",
        "rack_id",
        "session",
    )

    def __init__(
        self, request: FetchRequest, plan: FetchPlan, context: RequestContext, now_s: float
    ) -> None:
        session = plan.session
        self.session = session
        self.is_incremental = plan.is_incremental
        self.context = context
        self.max_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
        if context.usage is not None and not session.is_follower:
            self.max_bytes = int(min(self.max_bytes, context.usage.max_fetch_bytes()))
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.rack_id = request.rack_id
        self.deadline_s = now_s + request.max_wait_ms / 1000
        self.data: dict[FetchSessionPartition, PartitionData] = {}
        self.denied: Collection[FetchSessionPartition] = ()
        self.only_leader = True
        if session.is_follower:
            self.isolation = LOG_END
        else:
            is_committed_only = request.isolation_level == _READ_COMMITTED
            self.isolation = TXN_COMMITTED if is_committed_only else HIGH_WATERMARK
            self.only_leader = context.api_version < _FIRST_VERSION_OF_PREFERRED_REPLICA

    def authorize(self) -> None:
        """Find the partitions that the client may not read; each is an error in the response.

        Every partition of the session is checked with each request, as in Kafka.
        """
        session, context = self.session, self.context
        if session.is_follower:
            if not is_authorized_on_cluster(context, AclOperation.CLUSTER_ACTION):
                self.denied = set(session.partitions.values())
        else:
            topics = {p: _topic_name(p.topic, context) for p in session.partitions.values()}
            names = [name for name in topics.values() if name is not None]
            hidden = unauthorized(context, AclOperation.READ, names)
            if hidden:
                self.denied = {p for p, name in topics.items() if name in hidden}
        session.pending.update(dict.fromkeys(self.denied))

    def wait(self) -> DeferredResponse[FetchResponse]:
        """Read again when one of the partitions has changed, or at the deadline."""
        session = self.session
        delayed = session.delay(self.deadline_s)
        if session.session_id == NO_SESSION:
            session.watch()
            delayed.add_done_callback(self._close_if_cancelled)
        return DeferredResponse(delayed, self.read_again)

    def _close_if_cancelled(self, delayed: DelayedFetch) -> None:
        if delayed.cancelled():  # the client has closed its connection
            self.session.close()

    def read_again(self) -> FetchResponse | DeferredResponse[FetchResponse]:
        """Respond, unless there still is too little and the deadline has not passed."""
        session, is_woken = self.session, self.session.is_woken
        if not is_woken:
            session.last_fetch_ms = self.context.services.clock.now_ms()
        is_enough = self.read_pending()
        if is_enough or not is_woken or asyncio.get_running_loop().time() >= self.deadline_s:
            return self.respond()
        return self.wait()

    def read_pending(self) -> bool:
        """Read the pending partitions; returns whether that is enough to respond.

        What was read before and has not changed since is kept. A partition that has nothing more
        for the client is no longer pending; one that has comes last at the next read.
        """
        session = self.session
        session.is_woken = False
        left, size, is_urgent = self.max_bytes, 0, False
        min_one_message = self.context.api_version >= _FIRST_VERSION_OF_WHOLE_BATCHES
        for partition in list(session.pending):
            data, has_more, must_respond = _read_partition(
                partition, self, left, min_one_message=min_one_message
            )
            self.data[partition] = data
            session.pending.pop(partition, None)
            if has_more:
                session.pending[partition] = None
            if must_respond:
                is_urgent = True
            count = len(data.records or _NO_RECORDS)
            if count:
                min_one_message = False
                size += count
                left = max(0, left - count)
        return is_urgent or size >= self.min_bytes

    def respond(self) -> FetchResponse:
        """Send what was read; within a session, only what is new to the client."""
        session = self.session
        if self.context.usage is not None and not session.is_follower:
            delay_ms = self.context.usage.record_fetch(self._num_bytes())
            if delay_ms:
                return self._respond_throttled(delay_ms)
        has_session = session.session_id != NO_SESSION
        topics: dict[str | Uuid, list[PartitionData]] = {}
        is_follower = session.is_follower
        for partition, data in self.data.items():
            found = partition.partition
            if data.records and found is not None:
                if is_follower:
                    found.stats.replication_bytes_out += len(data.records)
                    if session.replica_id in found.state.adding_replicas:
                        found.stats.reassignment_bytes_out += len(data.records)
                else:
                    found.stats.bytes_out += len(data.records)
            if not has_session or partition.update_sent(data) or not self.is_incremental:
                topics.setdefault(partition.topic, []).append(data)
        if not has_session:
            session.close()
        return FetchResponse(
            session_id=session.session_id,
            responses=[
                FetchableTopicResponse(topic_id=topic, partitions=partitions)
                if isinstance(topic, Uuid)
                else FetchableTopicResponse(topic=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
            node_endpoints=_endpoints(self.data.values(), self.context),
        )

    def _num_bytes(self) -> int:
        """About the size of the response, as quotas count it: before any conversion."""
        return sum(
            _PARTITION_BYTES + len(data.records or _NO_RECORDS) for data in self.data.values()
        )

    def _respond_throttled(self, delay_ms: int) -> FetchResponse:
        """Send nothing; the client fetches the same again when it is not throttled any more.

        A session that this request has opened is not used, as in Kafka: the client opens another.
        """
        session = self.session
        session.pending.update(dict.fromkeys(self.data))
        if not self.is_incremental:
            self.context.services.fetch_sessions.close(session)
            return FetchResponse(throttle_time_ms=delay_ms)
        return FetchResponse(throttle_time_ms=delay_ms, session_id=session.session_id)


def _endpoints(read: Iterable[PartitionData], context: RequestContext) -> list[NodeEndpoint]:
    """The addresses of the new leaders in the response, to save a Metadata request (KIP-951)."""
    if context.api_version < _FIRST_VERSION_OF_ENDPOINTS:
        return []
    leaders = {data.current_leader.leader_id for data in read if data.error_code}
    if not leaders:
        return []
    return [
        NodeEndpoint(node_id=broker.broker_id, host=broker.host, port=broker.port, rack=broker.rack)
        for broker in leader_endpoints(context, leaders)
    ]


class _PartitionRead(NamedTuple):
    """What was read for one partition.

    `has_more`: the partition stays pending, because there is more for the client, or may be.
    `must_respond`: the request must not wait for `min_bytes` (see the top of this module).
    """

    data: PartitionData
    has_more: bool
    must_respond: bool


def _read_partition(
    fetched: FetchSessionPartition, fetch: _Fetch, max_bytes: int, *, min_one_message: bool
) -> _PartitionRead:
    """Read one partition; if the client is a follower, record its fetch offset."""
    asked, context = fetched.requested, fetch.context
    try:
        partition = _find(fetched, fetch)
        if fetched.partition is not partition:
            fetched.set_partition(partition)
        partition.stats.fetch_requests += 1  # also if it fails, as in Kafka
        _check_role(fetched, partition, fetch)
        if asked.last_fetched_epoch >= 0:
            diverging = partition.divergence(asked.last_fetched_epoch, asked.fetch_offset)
            if diverging is not None:
                return _PartitionRead(_diverging(asked.partition, partition, diverging), True, True)
        if fetch.rack_id and not fetch.only_leader:
            preferred = preferred_read_replica(
                partition, asked.fetch_offset, fetch.rack_id, context
            )
            if preferred is not None:
                return _PartitionRead(
                    _redirected(asked.partition, partition, preferred), True, True
                )
        limit = min(asked.partition_max_bytes, max_bytes)
        is_full = limit <= 0 and not min_one_message
        found = (
            _check_unread(partition, asked.fetch_offset, fetch.isolation)
            if is_full
            else partition.log.read(
                asked.fetch_offset, limit, fetch.isolation, min_one_message=min_one_message
            )
        )
        if (
            context.api_version < _FIRST_VERSION_OF_ZSTD
            and partition.log.config.compression_type == _ZSTD
        ):
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        records = _records(found, asked.fetch_offset, context.api_version, partition.stats)
    except ApiError as error:
        return _PartitionRead(_failed(fetched, error, context), True, True)
    has_more = is_full or found.records is not None
    must_respond = found.is_off_end_segment
    replica = fetched.replica
    if replica is not None:
        if _is_throttled(replica, partition, context):
            records, must_respond = _NO_RECORDS, False
        context.services.replicas.leader_throttle.record(partition.name, len(records))
        partition.follower_fetched(
            replica,
            asked.fetch_offset,
            asked.log_start_offset,
            fetch.session.last_fetch_ms,
            fetch.session,
        )
        # A follower outside of the ISR may join with any fetch, even if nothing else changes.
        has_more = has_more or replica.broker_id not in partition.state.isr
    log = partition.log
    data = PartitionData(
        partition_index=asked.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=_aborted(found),
        records=records,
    )
    return _PartitionRead(data, has_more, must_respond)


def _check_unread(partition: Partition, offset: int, isolation: FetchIsolation) -> FetchData:
    """Check a partition without reading it, because others have filled the response.

    Raises the errors that a read would raise.

    Looking up a batch whose bytes are not sent would cost as much as a read, and the fetches of a
    consumer of many partitions are full most of the time.
    """
    partition.log.check_readable(offset)
    return _UNREAD_COMMITTED if isolation is TXN_COMMITTED else _UNREAD


def _check_role(fetched: FetchSessionPartition, partition: Partition, fetch: _Fetch) -> None:
    """Raise unless this broker may serve the client, in the leader epoch that the client knows."""
    epoch = fetched.requested.current_leader_epoch
    if not fetch.only_leader:
        partition.check_epoch(epoch)
        return
    partition.check_leader(epoch)
    if fetch.session.is_follower:
        fetched.replica = partition.follower(fetch.session.replica_id, epoch)


def _is_throttled(replica: RemoteReplica, partition: Partition, context: RequestContext) -> bool:
    """Whether a follower outside of the ISR gets nothing now, because the rate is exceeded."""
    return (
        replica.broker_id not in partition.state.isr
        and context.services.replicas.leader_throttle.holds_back(partition.name)
    )


def _diverging(index: int, partition: Partition, found: tuple[int, int]) -> PartitionData:
    epoch, end_offset = found
    return PartitionData(
        partition_index=index,
        high_watermark=partition.log.high_watermark,
        last_stable_offset=partition.log.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset),
        aborted_transactions=None,
        records=_NO_RECORDS,
    )


def _redirected(index: int, partition: Partition, preferred: int) -> PartitionData:
    return PartitionData(
        partition_index=index,
        high_watermark=partition.log.high_watermark,
        last_stable_offset=partition.log.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=preferred,
        records=_NO_RECORDS,
    )


def _find(fetched: FetchSessionPartition, fetch: _Fetch) -> Partition:
    if fetch.denied and fetched in fetch.denied:
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = _topic_name(fetched.topic, fetch.context)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {fetched.topic}")
    return fetch.context.services.replicas.find(topic, fetched.requested.partition)


def _topic_name(topic: str | Uuid, context: RequestContext) -> str | None:
    if isinstance(topic, Uuid):
        return context.services.metadata.names.get(topic)
    return topic


def _aborted(found: FetchData) -> list[AbortedTransaction] | None:
    if found.aborted_transactions is None:
        return None
    return [
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in found.aborted_transactions
    ]


def _records(found: FetchData, fetch_offset: int, version: int, stats: TopicStats) -> Records:
    """The batches, down-converted for a client of an old version."""
    if found.records is None:
        return _NO_RECORDS
    if found.first_entry_incomplete and version >= _FIRST_VERSION_OF_WHOLE_BATCHES:
        return _NO_RECORDS  # other partitions have used up the limit; this one is first next time
    magic = _MAGIC_BY_VERSION.get(version, CURRENT_MAGIC)
    if magic == CURRENT_MAGIC:
        return found.records
    data = found.records.read()
    batches = list(iterate_batches(data))
    if not needs_down_conversion(batches, magic):
        return data
    stats.fetch_message_conversions += sum(batch.header.records_count for batch in batches)
    return b"".join(down_convert(batches, magic, fetch_offset))


def _failed(
    fetched: FetchSessionPartition, error: ApiError, context: RequestContext
) -> PartitionData:
    leader = LeaderIdAndEpoch()
    if error.code in _MOVED and context.api_version >= _FIRST_VERSION_OF_CURRENT_LEADER:
        name = fetched.topic
        if isinstance(name, Uuid):
            name = context.services.metadata.names.get(name, "")
        leader_id, leader_epoch = current_leader(context, name, fetched.requested.partition)
        leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    return PartitionData(
        partition_index=fetched.requested.partition,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=[] if error.code in _NOT_READ else None,  # as Kafka does
        current_leader=leader,
        records=_NO_RECORDS,
    )


def error_response(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """The error of the whole request, and of every partition for versions without that field."""
    return FetchResponse(
        error_code=code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=asked.partition,
                        error_code=code,
                        high_watermark=-1,
                        aborted_transactions=None,
                        records=_NO_RECORDS,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
