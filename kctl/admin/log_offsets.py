"""Offsets of partitions: log start, log end, or at a timestamp."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.errors import EncodeError
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from kctl.admin.broker_queries import BrokerUnavailable, each_broker, from_controller
from kctl.cli.errors import CliError
from kctl.cli.missing import no_such
from kctl.model.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, OffsetAnswer

Errors = dict[TopicPartition, ErrorCode]

_PROPAGATION_S = 0.05
_PROPAGATION_ATTEMPTS = 100
"""Retries on a broker that does not know yet a topic that the controller knows: pause, number."""

_CONSUMER = -1
"""The replica id of a consumer."""
_DEBUGGING_CONSUMER = -2
"""The replica id of a client that any replica answers, with its own log end offset."""


async def partitions_of(client: Client, topics: Iterable[str]) -> dict[str, list[int]]:
    """The partition numbers of each topic; CliError for a topic that does not exist."""
    found = await known_partitions(client, topics)
    missing = [topic for topic, partitions in found.items() if partitions is None]
    if missing:
        there = (await client.refresh_metadata(None)).topics
        raise no_such("topic", missing, (topic.name or "" for topic in there))
    return {topic: partitions or [] for topic, partitions in found.items()}


async def require_partitions(client: Client, places: Iterable[TopicPartition]) -> None:
    """CliError for a topic or partition that does not exist."""
    wanted = list(places)
    found = await partitions_of(client, (place.topic for place in wanted))
    for place in wanted:
        if place.partition not in found[place.topic]:
            last = max(found[place.topic], default=-1)
            raise CliError(
                f"{place.topic} has no partition {place.partition}", f"it has 0 to {last}"
            )


async def known_partitions(client: Client, topics: Iterable[str]) -> dict[str, list[int] | None]:
    """The partition numbers of each topic; None for a topic that does not exist.

    ApiError for a topic that this user may not describe.
    """
    wanted = list(dict.fromkeys(topics))
    answered = await _described(client, wanted) if wanted else []
    for topic in answered:
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"topic {topic.name}")
    found = {
        topic.name: sorted(partition.partition_index for partition in topic.partitions)
        for topic in answered
        if not topic.error_code
    }
    return {topic: found.get(topic) for topic in wanted}


async def _described(client: Client, topics: Sequence[str]) -> list[MetadataResponseTopic]:
    """The metadata of topics, as a broker has it that knows what the controller knows.

    A broker learns of a new topic a moment after the client that created it: a command that runs
    right after `kctl topics create` must not report the topic as missing.
    """
    answered = (await client.refresh_metadata(topics)).topics
    unknown = _unknown(answered)
    if not unknown:
        return answered
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in unknown],
        allow_auto_topic_creation=False,
    )
    try:
        known = await from_controller(client, request)
    except (BrokerUnavailable, EncodeError):  # EncodeError: brokers before 0.11 create topics
        return answered
    new = set() if known is None else unknown - _unknown(known.topics)
    attempts = _PROPAGATION_ATTEMPTS
    while attempts and new & _unknown(answered):
        await asyncio.sleep(_PROPAGATION_S)
        answered = (await client.refresh_metadata(topics)).topics
        attempts -= 1
    return answered


def _unknown(topics: Iterable[MetadataResponseTopic]) -> set[str]:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {topic.name or "" for topic in topics if topic.error_code == code}


async def list_offsets(
    client: Client,
    wanted: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    errors: Errors | None = None,
) -> dict[TopicPartition, OffsetAnswer]:
    """The offset of each partition at its timestamp; leaders are queried in parallel.

    Partitions without a leader, or whose leader returns an error, are missing; the reasons are
    added to `errors`. With `read_committed` the log end is the last stable offset.
    """
    reasons: Errors = {} if errors is None else errors
    by_leader = await client.leaders_of(wanted)
    reasons |= dict.fromkeys(by_leader.get(-1, ()), ErrorCode.LEADER_NOT_AVAILABLE)
    answers = await each_broker(
        client,
        {
            leader: {tp: wanted[tp] for tp in partitions}
            for leader, partitions in by_leader.items()
            if leader >= 0
        },
        lambda leader, own: _ask_leader(client, leader, own, int(read_committed), reasons),
    )
    return {tp: offset for answer in answers.values() for tp, offset in answer.items()}


async def log_ends(
    client: Client,
    partitions: Iterable[TopicPartition],
    *,
    read_committed: bool = False,
    errors: Errors | None = None,
) -> dict[TopicPartition, int]:
    """The high watermark or last stable offset of each partition."""
    wanted = dict.fromkeys(partitions, LATEST_TIMESTAMP)
    found = await list_offsets(client, wanted, read_committed=read_committed, errors=errors)
    return {partition: answer.offset for partition, answer in found.items()}


async def log_starts(
    client: Client, partitions: Iterable[TopicPartition], *, errors: Errors | None = None
) -> dict[TopicPartition, int]:
    """The log start offset of each partition."""
    wanted = dict.fromkeys(partitions, EARLIEST_TIMESTAMP)
    found = await list_offsets(client, wanted, errors=errors)
    return {partition: answer.offset for partition, answer in found.items()}


async def replica_ends(
    client: Client, by_broker: Mapping[int, Iterable[TopicPartition]]
) -> dict[tuple[TopicPartition, int], int]:
    """The log end offset of each replica, by partition and broker; one request per broker.

    Replicas that a broker does not have (yet) are missing.
    """
    answers = await each_broker(
        client,
        {node: dict.fromkeys(places, LATEST_TIMESTAMP) for node, places in by_broker.items()},
        lambda node, own: _ask_leader(client, node, own, 0, {}, _DEBUGGING_CONSUMER),
    )
    return {(tp, node): one.offset for node, own in answers.items() for tp, one in own.items()}


async def _ask_leader(
    client: Client,
    leader: int,
    wanted: Mapping[TopicPartition, int],
    isolation_level: int,
    errors: Errors,
    replica_id: int = _CONSUMER,
) -> dict[TopicPartition, OffsetAnswer]:
    by_topic: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for (topic, partition), timestamp in wanted.items():
        by_topic[topic].append(ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=name, partitions=asked) for name, asked in by_topic.items()],
    )
    answer = await client.send_to(leader, request)
    offsets: dict[TopicPartition, OffsetAnswer] = {}
    for answered in answer.topics:
        for found in answered.partitions:
            place = TopicPartition(answered.name, found.partition_index)
            if found.error_code == ErrorCode.NONE:
                offsets[place] = OffsetAnswer(found.offset, found.timestamp, found.leader_epoch)
            else:
                errors[place] = ErrorCode(found.error_code)
    return offsets
