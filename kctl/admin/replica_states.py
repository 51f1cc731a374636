"""The state of every replica of some topics, as each broker reports its own."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from broker.errors import ErrorCode
from broker.model import TopicPartition, Uuid
from broker.net.client import Client
from kctl.admin.broker_queries import each_broker
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.replica_fetch import FetchSizes, fetch_from_replica, offsets_of_replica
from kctl.model.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kctl.model.replicas import ReplicaState
from kctl.model.topics import Topic

_NO_WAIT = FetchSizes(partition_bytes=1, max_wait_ms=0)


@dataclass(frozen=True)
class _Reported:
    """What a broker reports about its replica of one partition."""

    log_start_offset: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None
    error: str | None = None


async def list_replicas(client: Client, topics: Sequence[Topic]) -> list[ReplicaState]:
    """All replicas, by partition and in the order of assignment.

    The brokers are queried one after another only in their parts, so values of different replicas
    are from slightly different moments. In a partial query, replicas of brokers that did not answer
    have no offsets.
    """
    await client.refresh_metadata()
    live = set(client.cluster.nodes)
    wanted: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic in topics:
        for partition in topic.partitions:
            for broker in partition.replicas:
                if broker in live:
                    wanted[broker].append(TopicPartition(topic.name, partition.id))
    ids = {topic.name: topic.topic_id or Uuid.ZERO for topic in topics}
    found = await each_broker(
        client, wanted, lambda broker, places: _ask(client, broker, places, ids)
    )
    log_dirs = await describe_log_dirs(client, wanted, topics)
    sizes = {
        (log_dir.broker_id, one.partition): one.size_bytes
        for log_dir in log_dirs
        for one in log_dir.replicas
        if not one.is_future
    }
    return [
        replace(state, size_bytes=sizes.get((state.broker, state.partition)))
        for topic in topics
        for state in _states(topic, found, live)
    ]


async def _ask(
    client: Client, broker: int, places: Sequence[TopicPartition], ids: Mapping[str, Uuid]
) -> dict[TopicPartition, _Reported]:
    ends = await offsets_of_replica(client, broker, dict.fromkeys(places, LATEST_TIMESTAMP))
    starts = await offsets_of_replica(client, broker, dict.fromkeys(places, EARLIEST_TIMESTAMP))
    at = {place: one.offset for place, one in ends.items() if one.error_code == ErrorCode.NONE}
    fetched = await fetch_from_replica(client, broker, at, ids, _NO_WAIT) if at else {}
    found = {}
    for place in places:
        code = ErrorCode(ends[place].error_code) if place in ends else ErrorCode.NONE
        data = fetched.get(place)
        # A follower that has truncated its log meanwhile answers OFFSET_OUT_OF_RANGE.
        is_read = data is not None and data.error_code == ErrorCode.NONE
        start = starts.get(place)
        found[place] = _Reported(
            start.offset if start and start.error_code == ErrorCode.NONE else None,
            at.get(place),
            data.high_watermark if data is not None and is_read else None,
            None if code is ErrorCode.NONE else code.name,
        )
    return found


def _states(
    topic: Topic, found: Mapping[int, Mapping[TopicPartition, _Reported]], live: set[int]
) -> list[ReplicaState]:
    states = []
    for partition in topic.partitions:
        place = TopicPartition(topic.name, partition.id)
        leader = found.get(-1 if partition.leader is None else partition.leader, {}).get(place)
        end = leader.log_end_offset if leader else None
        for broker in partition.replicas:
            own = found.get(broker, {}).get(place, _Reported())
            is_known = end is not None and own.log_end_offset is not None
            lag = max(0, (end or 0) - (own.log_end_offset or 0)) if is_known else None
            states.append(
                ReplicaState(
                    place,
                    broker,
                    is_leader=broker == partition.leader,
                    is_in_sync=broker in partition.isr,
                    is_online=broker in live,
                    log_start_offset=own.log_start_offset,
                    log_end_offset=own.log_end_offset,
                    high_watermark=own.high_watermark,
                    lag=lag,
                    error=own.error,
                )
            )
    return states
