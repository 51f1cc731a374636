"""ListOffsets on one broker; tests/conformance/admin_offsets.py compares it with Kafka."""

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.api.requests import EARLIEST, LATEST, list_offset, produce
from tests.support.wire import WireClient

MAX_TIMESTAMP = -3


@pytest.mark.parametrize("version", range(1, 10))
def test_earliest_and_latest_in_every_version(wire: WireClient, topic: str, version: int) -> None:
    produce(wire, topic, "a", "b")
    assert list_offset(wire, topic, EARLIEST, version=version).offset == 0
    assert list_offset(wire, topic, LATEST, version=version).offset == 2


def test_version_0_returns_base_offsets_of_segments(wire: WireClient, topic: str) -> None:
    produce(wire, topic, "a", "b")
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST, max_num_offsets=5)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )
    (found,) = wire.ask(request, 0).topics[0].partitions
    assert found.old_style_offsets == [2, 0]


def test_offset_by_time_is_the_first_record_as_late_as_that(wire: WireClient, topic: str) -> None:
    produce(wire, topic, "a", "b")
    largest = list_offset(wire, topic, MAX_TIMESTAMP)
    assert largest.offset == 1
    found = list_offset(wire, topic, largest.timestamp)
    assert (found.offset, found.timestamp) == (1, largest.timestamp)
    later = list_offset(wire, topic, largest.timestamp + 1)
    assert (later.error_code, later.offset, later.timestamp) == (0, -1, -1)


def test_partition_that_does_not_exist(wire: WireClient, topic: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(wire, topic, LATEST, partition=7).error_code == unknown
    assert list_offset(wire, "unknown-topic", LATEST).error_code == unknown


@pytest.mark.parametrize("version", [1, 6])
def test_largest_timestamp_is_unsupported_before_version_7(
    wire: WireClient, topic: str, version: int
) -> None:
    found = list_offset(wire, topic, MAX_TIMESTAMP, version=version)
    assert found.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_partition_named_twice_is_an_invalid_request(wire: WireClient, topic: str) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked, asked])]
    )
    found = wire.ask(request, 9).topics[0].partitions
    assert {partition.error_code for partition in found} == {ErrorCode.INVALID_REQUEST}
