"""Timestamps of records at given offsets, read from the log."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from broker.model import TopicPartition, Uuid
from broker.net.client import Client
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from broker.records.batch import iterate_batches
from kctl.admin.broker_queries import each_broker

Place = tuple[TopicPartition, int]
"""A partition and an offset in it."""

SMALL_BYTES = 1 << 16
"""Enough for most batches; a larger one is fetched separately."""
_MAX_BYTES = 1 << 26


async def record_times(client: Client, places: Iterable[Place]) -> dict[Place, int]:
    """The timestamp of the first record at or after each offset.

    Offsets without a record, or whose leader does not answer, are missing.
    """
    wanted = set(places)
    if not wanted:
        return {}
    answer = await client.refresh_metadata({partition.topic for partition, _ in wanted})
    ids = {topic.name or "": topic.topic_id for topic in answer.topics}
    times: dict[Place, int] = {}
    for offsets in _rounds(wanted):
        found = await _ask_leaders(client, offsets, ids)
        times |= {(partition, offsets[partition]): time for partition, time in found.items()}
    return times


def _rounds(places: Iterable[Place]) -> list[dict[TopicPartition, int]]:
    """Offsets grouped into as few fetches as possible, without a partition twice in one."""
    rounds: list[dict[TopicPartition, int]] = []
    times_seen: Counter[TopicPartition] = Counter()
    for partition, offset in sorted(places):
        number = times_seen[partition]
        times_seen[partition] += 1
        if number == len(rounds):
            rounds.append({})
        rounds[number][partition] = offset
    return rounds


async def _ask_leaders(
    client: Client, offsets: Mapping[TopicPartition, int], ids: Mapping[str, Uuid]
) -> dict[TopicPartition, int]:
    by_leader = await client.leaders_of(offsets)
    found = await each_broker(
        client,
        {
            leader: {tp: offsets[tp] for tp in partitions}
            for leader, partitions in by_leader.items()
            if leader >= 0
        },
        lambda leader, own: _from_leader(client, leader, own, ids),
    )
    return {partition: time for times in found.values() for partition, time in times.items()}


async def _from_leader(
    client: Client, leader: int, offsets: Mapping[TopicPartition, int], ids: Mapping[str, Uuid]
) -> dict[TopicPartition, int]:
    times = await _fetch(client, leader, offsets, ids)
    for partition in offsets.keys() - times.keys():
        # A fetch of a single partition returns a complete batch of any size.
        times |= await _fetch(client, leader, {partition: offsets[partition]}, ids)
    return times


async def _fetch(
    client: Client, leader: int, offsets: Mapping[TopicPartition, int], ids: Mapping[str, Uuid]
) -> dict[TopicPartition, int]:
    by_topic: dict[str, list[FetchPartition]] = defaultdict(list)
    for (topic, partition), offset in offsets.items():
        by_topic[topic].append(
            FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=SMALL_BYTES
            )
        )
    topics = [
        FetchTopic(topic=name, topic_id=ids[name], partitions=asked)
        for name, asked in by_topic.items()
    ]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_MAX_BYTES, topics=topics)
    answer = await client.send_to(leader, request)
    names = {topic_id: name for name, topic_id in ids.items()}
    times = {}
    for response in answer.responses:
        name = response.topic or names[response.topic_id]
        for found in response.partitions:
            place = TopicPartition(name, found.partition_index)
            time = None if found.error_code else _first_time(found, offsets[place])
            if time is not None:
                times[place] = time
    return times


def _first_time(found: PartitionData, offset: int) -> int | None:
    """The timestamp of the first fetched record at or after `offset`."""
    if not isinstance(found.records, bytes | bytearray | memoryview):
        return None
    for batch in iterate_batches(found.records):
        if batch.is_control or batch.last_offset < offset:
            continue
        for record_offset, timestamp, *_ in batch.record_tuples():
            if record_offset >= offset:
                return timestamp
    return None
