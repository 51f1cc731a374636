"""OffsetFetch on one broker."""

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.api.requests import commit, commit_request
from tests.support.wire import WireClient


@pytest.mark.parametrize("version", range(1, 8))
def test_committed_offsets_of_one_group(
    wire: WireClient, group: str, topic: str, version: int
) -> None:
    commit(wire, group, topic, 5)
    asked = OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])
    response = wire.ask(OffsetFetchRequest(group_id=group, topics=[asked]), version)
    found = response.topics[0].partitions
    assert [(one.committed_offset, one.metadata, one.error_code) for one in found] == [
        (5, "note", ErrorCode.NONE),
        (-1, "", ErrorCode.NONE),  # never committed
    ]


def test_version_0_reads_what_version_0_committed(wire: WireClient, group: str, topic: str) -> None:
    wire.ask(commit_request(group, topic, 7), 0)
    asked = OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
    request = OffsetFetchRequest(group_id=group, topics=[asked])
    assert wire.ask(request, 0).topics[0].partitions[0].committed_offset == 7
    assert wire.ask(request, 1).topics[0].partitions[0].committed_offset == -1


def test_null_requests_all_partitions(wire: WireClient, group: str, topic: str) -> None:
    commit(wire, group, topic, 5)
    response = wire.ask(OffsetFetchRequest(group_id=group, topics=None), 7)
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics] == [
        (topic, [0])
    ]


@pytest.mark.parametrize("version", [8, 9])
def test_many_groups(wire: WireClient, group: str, topic: str, version: int) -> None:
    commit(wire, group, topic, 5)
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id=g, topics=topics) for g in (group, "other")]
    found = wire.ask(OffsetFetchRequest(groups=groups), version).groups
    assert [g.topics[0].partitions[0].committed_offset for g in found] == [5, -1]
