"""Metadata on one broker, and on one that has just started."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from broker.api.handlers.metadata import handle
from broker.errors import ErrorCode
from broker.metadata_cache import MetadataCache
from broker.model import Uuid
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
)
from tests.support.wire import WireClient


def look_at(*names: str, create: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_describes_the_topic(wire: WireClient, topic: str, version: int) -> None:
    response = wire.ask(look_at(topic), version)
    (found,) = response.topics
    assert (found.error_code, found.name) == (ErrorCode.NONE, topic)
    assert [partition.leader_id for partition in found.partitions] == [1, 1]
    assert [broker.node_id for broker in response.brokers] == [1]
    assert response.controller_id == 1


def test_null_requests_all_topics_and_an_empty_list_none(wire: WireClient, topic: str) -> None:
    every = wire.ask(MetadataRequest(topics=None), 12).topics
    assert topic in [found.name for found in every]
    assert wire.ask(MetadataRequest(topics=[]), 12).topics == []


def test_empty_list_requests_all_topics_in_version_0(wire: WireClient, topic: str) -> None:
    assert topic in [found.name for found in wire.ask(MetadataRequest(topics=[]), 0).topics]


def test_topic_is_found_by_id(wire: WireClient, topic: str) -> None:
    topic_id = wire.ask(look_at(topic), 12).topics[0].topic_id
    for asked, name, code in (
        (topic_id, topic, ErrorCode.NONE),
        (Uuid(b"no topic has it!"), None, ErrorCode.UNKNOWN_TOPIC_ID),
    ):
        request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=asked)])
        (found,) = wire.ask(request, 12).topics
        assert (found.name, found.error_code) == (name, code)


@pytest.mark.parametrize("name", ["a/b", "", "x" * 250])
def test_invalid_name_is_an_invalid_topic(wire: WireClient, name: str) -> None:
    (found,) = wire.ask(look_at(name, create=True), 12).topics
    assert found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_unknown_topic_is_created_only_if_the_request_allows_it(wire: WireClient) -> None:
    (refused,) = wire.ask(look_at("created-by-metadata"), 12).topics
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (created,) = wire.ask(look_at("created-by-metadata", create=True), 12).topics
    assert (created.error_code, len(created.partitions)) == (ErrorCode.NONE, 1)


def test_regression_metadata_waits_for_the_first_update_of_the_controller() -> None:
    """librdkafka does not ask again after a response without brokers."""

    async def ask_and_tell() -> list[int]:
        metadata = MetadataCache("cluster")
        peer = SimpleNamespace(listener_name="PLAINTEXT")
        services = SimpleNamespace(metadata=metadata, authorizer=None)
        context: Any = SimpleNamespace(api_version=12, peer=peer, services=services)
        waiting: Any = handle(MetadataRequest(topics=None), context)
        asked = asyncio.ensure_future(waiting)
        await asyncio.sleep(0)
        assert not asked.done()
        endpoint = UpdateMetadataEndpoint(host="localhost", port=9092, listener="PLAINTEXT")
        me = UpdateMetadataBroker(id=7, endpoints=[endpoint])
        metadata.update(UpdateMetadataRequest(controller_id=7, live_brokers=[me]))
        return [broker.node_id for broker in (await asked).brokers]

    assert asyncio.run(ask_and_tell()) == [7]
