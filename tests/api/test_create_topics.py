"""CreateTopics on one broker; tests/conformance/admin_topics.py compares it with Kafka."""

from typing import Any

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.wire import WireClient


def create(
    wire: WireClient, name: str, version: int = 7, *, validate_only: bool = False, **fields: Any
) -> CreatableTopicResult:
    topic = CreatableTopic(name=name, **({"num_partitions": 1, "replication_factor": 1} | fields))
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=validate_only)
    (created,) = wire.ask(request, version).topics
    return created


def exists(wire: WireClient, name: str) -> bool:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    (found,) = wire.ask(asked, 12).topics
    return found.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(8))
def test_every_version_creates(wire: WireClient, version: int) -> None:
    created = create(wire, f"version-{version}", version, num_partitions=3)
    assert created.error_code == ErrorCode.NONE
    assert exists(wire, f"version-{version}")
    if version >= 5:
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        assert created.configs


def test_validate_only_creates_nothing(wire: WireClient) -> None:
    assert create(wire, "validated", validate_only=True).error_code == ErrorCode.NONE
    assert not exists(wire, "validated")


def test_defaults_of_the_broker_are_used_from_version_4_on(wire: WireClient) -> None:
    created = create(wire, "by-default", num_partitions=-1, replication_factor=-1)
    assert (created.error_code, created.num_partitions) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize(
    ("name", "fields", "code"),
    [
        ("a/b", {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("none", {"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ("none", {"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ("none", {"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        (
            "none",
            {"configs": [CreatableTopicConfig(name="retention.ms", value="soon")]},
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_invalid_topics_are_refused(
    wire: WireClient, name: str, fields: dict[str, Any], code: ErrorCode
) -> None:
    refused = create(wire, name, **fields)
    assert refused.error_code == code
    assert refused.error_message


def test_topic_that_exists_already(wire: WireClient, topic: str) -> None:
    refused = create(wire, topic)
    assert refused.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert refused.error_message == f"Topic '{topic}' already exists."


def test_topic_named_twice_is_an_invalid_request(wire: WireClient) -> None:
    twice = CreatableTopic(name="twice", num_partitions=1, replication_factor=1)
    refused = wire.ask(CreateTopicsRequest(topics=[twice, twice], timeout_ms=1000), 7).topics
    assert {one.error_code for one in refused} == {ErrorCode.INVALID_REQUEST}
    assert not exists(wire, "twice")
