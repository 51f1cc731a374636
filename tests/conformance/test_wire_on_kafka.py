"""Our client, and the malformed requests, on a real Apache Kafka."""

import asyncio

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import TRANSACTION, Client
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import request_class
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.describe_cluster import DescribeClusterRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.metadata import MetadataRequest
from tests.conformance.hostile import HOSTILE, Hostile, answer_to
from tests.net.support import in_loop
from tests.support.processes import free_port
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

TOPIC = "wire-client"


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_kafka_answers_hostile_bytes_as_we_believe(real_kafka: RealKafka, hostile: Hostile) -> None:
    assert answer_to(hostile, real_kafka.brokers[0]) == hostile.answer


@in_loop
async def test_every_route_leads_to_an_answer(real_kafka: RealKafka) -> None:
    servers = [f"127.0.0.1:{free_port()}", *real_kafka.brokers]
    async with Client(servers) as client:
        cluster = await client.send(DescribeClusterRequest())
        assert [broker.broker_id for broker in cluster.brokers] == [1]

        topic = CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)
        created = await client.send_to_controller(CreateTopicsRequest(topics=[topic]))
        assert created.topics[0].error_code == 0

        partition = TopicPartition(TOPIC, 1)
        request = ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name=TOPIC,
                    partitions=[ListOffsetsPartition(partition_index=1, timestamp=-1)],
                )
            ]
        )
        offsets = await client.send_to_leader(partition, request)
        answer = offsets.topics[0].partitions[0]
        assert (answer.error_code, answer.offset) == (0, 0)
        assert await client.leaders_of([partition]) == {1: [partition]}

        # The first request makes Kafka create and load __consumer_offsets.
        groups = await client.send_to_coordinator(
            "unknown", DescribeGroupsRequest(groups=["unknown"])
        )
        assert (groups.groups[0].error_code, groups.groups[0].group_state) == (0, "Dead")
        transactions = await client.send_to_coordinator(
            "nothing", DescribeTransactionsRequest(transactional_ids=["nothing"]), TRANSACTION
        )
        (state,) = transactions.transaction_states
        assert state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

        listed = await client.send_to(1, ListGroupsRequest())
        assert listed.error_code == 0


@in_loop
async def test_requests_are_answered_in_order_over_one_connection(real_kafka: RealKafka) -> None:
    async with Client(real_kafka.brokers) as client:
        metadata, described = await asyncio.gather(
            asyncio.gather(*(client.send_to(1, MetadataRequest(topics=[])) for _ in range(50))),
            asyncio.gather(*(client.send_to(1, DescribeClusterRequest()) for _ in range(50))),
        )
    assert len({a.cluster_id for a in metadata} | {a.cluster_id for a in described}) == 1


@in_loop
async def test_we_have_a_version_in_common_for_every_api_that_we_declare(
    real_kafka: RealKafka,
) -> None:
    async with Client(real_kafka.brokers) as client:
        theirs = await client.versions_of(1)
    for api in ApiKey:
        if api in theirs:
            lowest, highest = request_class(api).versions
            assert (lowest, highest) >= theirs[api], api.name
