"""OffsetCommit on one broker, by clients without membership and by members."""

import pytest

from broker.errors import ErrorCode
from tests.api.requests import commit, commit_request, join_as_only_member
from tests.support.wire import WireClient


@pytest.mark.parametrize("version", range(10))
def test_every_version_commits(wire: WireClient, group: str, topic: str, version: int) -> None:
    response = wire.ask(commit_request(group, topic, 5), version)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_regression_retention_beyond_the_largest_timestamp_is_accepted(
    wire: WireClient, group: str, topic: str
) -> None:
    """As in Kafka, where the sum wraps around: the offset expires soon."""
    request = commit_request(group, topic, 5, retention_time_ms=2**63 - 1)
    response = wire.ask(request, 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_unknown_topic_is_an_error_of_its_partitions(wire: WireClient, group: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(wire, group, "unknown-topic", 5) == unknown


def test_metadata_above_the_limit_is_too_large(wire: WireClient, group: str, topic: str) -> None:
    request = commit_request(group, topic, 5, metadata="x" * 4097)
    answered = wire.ask(request, 8).topics[0].partitions[0]
    assert answered.error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_members_commit_with_their_generation(wire: WireClient, group: str, topic: str) -> None:
    member_id = join_as_only_member(wire, group).member_id
    for generation_id, member, code in (
        (9, member_id, ErrorCode.ILLEGAL_GENERATION),
        (1, "unknown", ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, "", ErrorCode.UNKNOWN_MEMBER_ID),  # others may not commit while there are members
    ):
        own = {"generation_id_or_member_epoch": generation_id, "member_id": member}
        assert commit(wire, group, topic, 5, **own) == code


def test_group_without_a_name_is_committed_to_without_membership(
    wire: WireClient, group: str, topic: str
) -> None:
    assert commit(wire, "", topic, 5) == ErrorCode.NONE
