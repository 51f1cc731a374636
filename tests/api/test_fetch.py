"""Fetch on one broker: limits, waits, offsets out of range, sessions by what they answer."""

import time
from functools import partial

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.fetch import FetchPartition, FetchRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.records.batch import read_header
from tests.api.requests import create_topic, fetch, fetch_request, produce, records_of
from tests.support.wire import WireClient


def test_batches_come_from_the_offset_on(wire: WireClient, topic: str) -> None:
    for value in ("a", "b", "c"):
        produce(wire, topic, value)
    found = fetch(wire, topic, offset=1)
    assert (found.error_code, found.high_watermark, found.log_start_offset) == (0, 3, 0)
    assert read_header(memoryview(records_of(found))).base_offset == 1


@pytest.mark.parametrize("version", range(13))
def test_every_version_by_name_returns_the_records(
    wire: WireClient, topic: str, version: int
) -> None:
    produce(wire, topic, "value")
    found = fetch(wire, topic, version=version)
    assert (found.error_code, found.high_watermark) == (ErrorCode.NONE, 1)
    assert b"value" in records_of(found)


@pytest.mark.parametrize("version", range(13, 18))
def test_every_version_by_topic_id_returns_the_records(
    wire: WireClient, topic: str, version: int
) -> None:
    produce(wire, topic, "value")
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    topic_id = wire.ask(asked, 12).topics[0].topic_id
    request = fetch_request("", topic_id=topic_id)
    (found,) = wire.ask(request, version).responses[0].partitions
    assert b"value" in records_of(found)


@pytest.mark.parametrize("offset", [-1, 2, 99])
def test_offset_outside_the_log_is_out_of_range(wire: WireClient, topic: str, offset: int) -> None:
    produce(wire, topic, "value")
    assert fetch(wire, topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_partition_that_does_not_exist(wire: WireClient, topic: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(wire, topic, partition=7).error_code == unknown
    assert fetch(wire, "unknown-topic").error_code == unknown


def test_log_end_waits_max_wait_ms(wire: WireClient, topic: str) -> None:
    started = time.monotonic()
    found = fetch(wire, topic, max_wait_ms=200)
    assert time.monotonic() - started >= 0.19
    assert (found.error_code, records_of(found)) == (0, b"")


def test_error_does_not_wait(wire: WireClient, topic: str) -> None:
    started = time.monotonic()
    fetch(wire, topic, offset=9, max_wait_ms=10_000)
    assert time.monotonic() - started < 9


def test_first_batch_is_whole_even_above_the_limits(wire: WireClient, topic: str) -> None:
    produce(wire, topic, "x" * 5000)
    request = fetch_request(topic, max_bytes=10, partition_max_bytes=10)
    (found,) = wire.ask(request, 12).responses[0].partitions
    assert len(records_of(found)) > 5000


def test_wrong_leader_epoch_is_fenced_or_unknown(wire: WireClient, topic: str) -> None:
    request = fetch_request(topic, current_leader_epoch=99)
    (found,) = wire.ask(request, 12).responses[0].partitions
    assert found.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_session_answers_only_what_changed(wire: WireClient, topic: str) -> None:
    first = wire.ask(fetch_request(topic, session_epoch=0, max_wait_ms=0), 12)
    assert first.session_id
    again = partial(FetchRequest, session_id=first.session_id, max_wait_ms=0, topics=[])
    assert wire.ask(again(session_epoch=1), 12).responses == []
    produce(wire, topic, "value")
    (changed,) = wire.ask(again(session_epoch=2, min_bytes=1), 12).responses
    assert b"value" in records_of(changed.partitions[0])
    wrong = wire.ask(again(session_epoch=9), 12)
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize("version", [1, 3, 9])
def test_regression_topic_with_zstd_is_refused_to_versions_before_10(
    wire: WireClient, version: int
) -> None:
    name = f"zstd-{version}"
    create_topic(wire, name, compression_type="zstd")
    produce(wire, name, "value")
    refused = fetch(wire, name, version=version)
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (refused.high_watermark, records_of(refused)) == (-1, b"")
    assert fetch(wire, name, version=10).error_code == ErrorCode.NONE


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_partitions_behind_a_full_response_get_no_records_but_their_errors(
    wire: WireClient, topic: str, isolation_level: int
) -> None:
    create_topic(wire, f"{topic}-full", 3)
    for partition in range(3):
        produce(wire, f"{topic}-full", "x" * 500, partition=partition)
    request = fetch_request(f"{topic}-full", max_bytes=100, isolation_level=isolation_level)
    others = [
        FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1000),
        FetchPartition(partition=2, fetch_offset=99, partition_max_bytes=1000),
    ]
    request.topics[0].partitions.extend(others)
    found = wire.ask(request, 12).responses[0].partitions
    assert [len(records_of(each)) > 500 for each in found] == [True, False, False]
    none, out_of_range = ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE
    assert [each.error_code for each in found] == [none, none, out_of_range]
    assert found[1].high_watermark == 1
    assert found[1].aborted_transactions == ([] if isolation_level else None)
