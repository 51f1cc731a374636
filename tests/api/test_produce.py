"""Produce on one broker; tests/conformance/test_bad_requests.py has what is malformed."""

import pytest

from broker.errors import ErrorCode
from broker.records.builder import build_batch
from broker.records.legacy import build_messages
from tests.api.requests import create_topic, fetch, produce, produce_request
from tests.log.support import batch
from tests.support.wire import WireClient, request_frame

LONG_AGO_MS = 1_000


def test_offsets_follow_each_other(wire: WireClient, topic: str) -> None:
    first, second = produce(wire, topic, "a", "b"), produce(wire, topic, "c")
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert first.log_append_time_ms == -1  # CreateTime
    assert first.log_start_offset == 0


@pytest.mark.parametrize("version", range(3, 12))
def test_every_version_with_batches_appends(wire: WireClient, topic: str, version: int) -> None:
    assert produce(wire, topic, "value", version=version).error_code == ErrorCode.NONE
    assert fetch(wire, topic).high_watermark == 1


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_old_versions_append_old_messages(
    wire: WireClient, topic: str, version: int, magic: int
) -> None:
    messages = build_messages([(0, LONG_AGO_MS, b"key", b"value", ())], magic)
    response = wire.ask(produce_request(topic, messages), version)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize(("name", "partition"), [("unknown-topic", 0), (None, 7), (None, -1)])
def test_partition_that_does_not_exist(
    wire: WireClient, topic: str, name: str | None, partition: int
) -> None:
    response = wire.ask(produce_request(name or topic, batch("value"), partition), 9)
    answered = response.responses[0].partition_responses[0]
    assert answered.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answered.base_offset == -1


def test_acks_that_do_not_exist_are_an_error(wire: WireClient, topic: str) -> None:
    response = wire.ask(produce_request(topic, batch("value"), acks=3), 9)
    answered = response.responses[0].partition_responses[0]
    assert answered.error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_acks_0_gets_no_response(wire: WireClient, topic: str) -> None:
    wire.send(request_frame(produce_request(topic, batch("value"), acks=0), 9))
    assert produce(wire, topic, "next").base_offset == 1


def test_acks_0_with_an_error_closes_the_connection(wire: WireClient) -> None:
    wire.send(request_frame(produce_request("unknown-topic", batch("value"), acks=0), 9))
    assert wire.receive() is None


def test_batch_above_max_message_bytes_is_too_large(wire: WireClient) -> None:
    create_topic(wire, "small", max_message_bytes="200")
    assert produce(wire, "small", "x" * 300).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_record_without_key_is_refused_by_a_compacted_topic(wire: WireClient) -> None:
    create_topic(wire, "compacted", cleanup_policy="compact")
    keyless = build_batch([(0, LONG_AGO_MS, None, b"value", ())])
    response = wire.ask(produce_request("compacted", keyless), 9)
    answered = response.responses[0].partition_responses[0]
    assert answered.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answered.record_errors] == [0]


def test_log_append_time_is_returned(wire: WireClient) -> None:
    create_topic(wire, "stamped", message_timestamp_type="LogAppendTime")
    assert produce(wire, "stamped", "value").log_append_time_ms > LONG_AGO_MS
