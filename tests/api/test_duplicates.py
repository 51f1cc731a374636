"""A request that names the same thing very often gets one description of it, as in a set."""

from typing import Any

import pytest

from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from broker.protocol.schema import Request
from tests.api.requests import create_topic
from tests.support.broker import RunningBroker
from tests.support.wire import WireClient, read_response, request_frame

FEW, MANY = 20, 20_000
"""The first is handled at once, the second in chunks."""
LARGEST_RESPONSE = 100_000
TOPIC = 2
BROKER = 4


def requests(topic: str, broker_id: str, count: int) -> dict[str, tuple[Request[Any], int, str]]:
    """Requests with an entry repeated `count` times: (request, version, array of the response)."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    return {
        "metadata": (
            MetadataRequest(topics=[MetadataRequestTopic(name=topic)] * count),
            9,
            "topics",
        ),
        "configs of a broker": (
            DescribeConfigsRequest(
                resources=[DescribeConfigsResource(resource_type=BROKER, resource_name=broker_id)]
                * count
            ),
            4,
            "results",
        ),
        "configs of a topic": (
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=TOPIC,
                        resource_name=topic,
                        configuration_keys=["retention.ms"],
                    )
                ]
                * count
            ),
            4,
            "results",
        ),
        "groups": (DescribeGroupsRequest(groups=["g"] * count), 5, "groups"),
        "transactions": (
            DescribeTransactionsRequest(transactional_ids=["t"] * count),
            0,
            "transaction_states",
        ),
        "producers": (
            DescribeProducersRequest(
                topics=[TopicRequest(name=topic, partition_indexes=[0] * count)]
            ),
            0,
            "topics",
        ),
        "all offsets": (
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)] * count),
            8,
            "groups",
        ),
        "fetch": (
            FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1000,
                topics=[FetchTopic(topic=topic, partitions=[partition] * count)],
            ),
            11,
            "responses",
        ),
    }


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("name", requests("", "", 1))
def test_repeated_entry_is_described_once(
    shared_broker: RunningBroker, name: str, count: int
) -> None:
    topic = f"repeated-{name.replace(' ', '-')}-{count}"
    with WireClient(shared_broker.bootstrap_servers) as wire:
        create_topic(wire, topic)
        known = wire.ask(MetadataRequest(topics=[]), 9)
        request, version, array = requests(topic, str(known.brokers[0].node_id), count)[name]
        api_key = request.api_key
        wire.send(request_frame(request, version))
        frame = wire.receive()
    assert frame is not None
    assert len(frame) < LARGEST_RESPONSE
    (only,) = getattr(read_response(frame, api_key, version), array)
    assert len(getattr(only, "partitions", [0])) == 1


def test_different_keys_of_one_resource_are_different_entries(
    shared_broker: RunningBroker,
) -> None:
    keys = (["retention.ms"], ["retention.bytes"], None, None)
    resources = [
        DescribeConfigsResource(
            resource_type=TOPIC, resource_name="repeated", configuration_keys=wanted
        )
        for wanted in keys
    ]
    with WireClient(shared_broker.bootstrap_servers) as wire:
        create_topic(wire, "repeated")
        results = wire.ask(DescribeConfigsRequest(resources=resources), 4).results
    assert [len(result.configs) for result in results[:2]] == [1, 1]
    assert len(results) == 3
