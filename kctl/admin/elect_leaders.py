"""ElectLeaders."""

from collections import defaultdict
from collections.abc import Iterable

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kctl.admin.broker_queries import change_by_controller, request_timeout_ms
from kctl.model.elections import Election, ElectionType
from kctl.model.outcomes import outcome


async def elect_leaders(
    client: Client,
    election_type: ElectionType,
    partitions: Iterable[TopicPartition] | None,
    *,
    timeout_s: float,
) -> list[Election]:
    """Run elections; for all partitions (None), only those that needed one are returned."""
    request = ElectLeadersRequest(
        election_type=election_type.number,
        topic_partitions=None if partitions is None else _by_topic(partitions),
        timeout_ms=request_timeout_ms(timeout_s),
    )
    answer = await change_by_controller(client, request)
    if answer.error_code:
        raise ApiError(ErrorCode(answer.error_code))
    return [
        (
            TopicPartition(topic.topic, one.partition_id),
            outcome(f"{topic.topic}-{one.partition_id}", one.error_code, one.error_message),
        )
        for topic in answer.replica_election_results
        for one in topic.partition_result
    ]


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        grouped[topic].append(partition)
    return [TopicPartitions(topic=topic, partitions=some) for topic, some in grouped.items()]
