"""Conversations about brokers: elections, reassignments, log directories, features."""

from typing import Any

from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from broker.protocol.messages.describe_cluster import DescribeClusterRequest
from broker.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from broker.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.conformance.admin_offsets import epochs, produce
from tests.conformance.admin_topics import create, look_at, topic
from tests.conformance.exchange import Exchange, Talk, Until, carried

# --- cluster --------------------------------------------------------------------------------------


def the_cluster(prefix: str, version: int) -> Talk:
    yield DescribeClusterRequest()
    yield DescribeClusterRequest(include_cluster_authorized_operations=True)
    if version >= 1:
        for endpoint_type in (0, 2, 9):
            yield DescribeClusterRequest(endpoint_type=endpoint_type)


# --- elections ------------------------------------------------------------------------------------


def _elect(version: int, election_type: int, topics: dict[str, list[int]] | None) -> Any:
    asked = topics and [TopicPartitions(topic=t, partitions=p) for t, p in topics.items()]
    return carried(
        ElectLeadersRequest, version, election_type=election_type, topic_partitions=asked
    )


def elections_nobody_needs(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a", 2), topic(f"{prefix}half", manual={0: [1, 9]}))
    topics = {f"{prefix}a": [0, 1, 2, -1], f"{prefix}half": [0], f"{prefix}none": [0]}
    for election_type in (0, 1):
        yield _elect(version, election_type, topics)
    yield _elect(version, 0, {})
    yield _elect(version, 1, None)
    if version >= 1:
        yield _elect(version, 7, topics)
        yield _elect(version, 7, None)


def elections_of_the_dead(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a", manual={0: [9, 1]}))
    for election_type in (0, 1):
        yield _elect(version, election_type, {f"{prefix}a": [0]})


# --- reassignments --------------------------------------------------------------------------------


def _reassign(name: str, replicas: list[int] | None, index: int = 0) -> Any:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=[partition])]
    )


def refused_reassignments(prefix: str, version: int) -> Talk:
    name = f"{prefix}a"
    yield create(topic(name))
    for replicas in ([2], [2, 3, 1], [1, 2], [], [1, 1], [-1], [-1, -1], None):
        yield _reassign(name, replicas)
    for replicas in ([1], [3], None):
        yield _reassign(name, replicas, 7)
        yield _reassign(f"{prefix}none", replicas)
    yield AlterPartitionReassignmentsRequest(topics=[])
    yield look_at(name)


def reassignments_that_are_done_at_once(prefix: str, version: int) -> Talk:
    name, half = f"{prefix}a", f"{prefix}half"
    yield create(topic(name, retention_ms="-1"), topic(half, manual={0: [1, 9]}))
    yield produce(name, 1000)
    for moved in (name, half):
        yield _reassign(moved, [1])
        yield Until(look_at(moved), lambda seen: seen.topics[0].partitions[0].leader_epoch == 1)
    yield produce(name, 2000)
    for epoch in (0, 1, 2):
        yield epochs(OffsetForLeaderEpochRequest.versions[1], name, (0, -1, epoch))


def reassignments_under_way(prefix: str, version: int) -> Talk:
    name = f"{prefix}a"
    yield create(topic(name, 2), topic(f"{prefix}half", manual={0: [1, 9]}))
    yield ListPartitionReassignmentsRequest(topics=None)
    for index in (0, 5):
        asked = ListPartitionReassignmentsTopics(name=name, partition_indexes=[index])
        yield ListPartitionReassignmentsRequest(topics=[asked])
    yield ListPartitionReassignmentsRequest(
        topics=[ListPartitionReassignmentsTopics(name=f"{prefix}none", partition_indexes=[0])]
    )
    yield ListPartitionReassignmentsRequest(topics=[])
    half = f"{prefix}half"
    yield _reassign(half, [9])
    yield Until(
        ListPartitionReassignmentsRequest(
            topics=[ListPartitionReassignmentsTopics(name=half, partition_indexes=[0])]
        ),
        lambda seen: bool(seen.topics),
    )
    yield _reassign(half, None)
    yield ListPartitionReassignmentsRequest(topics=None)


# --- log directories ------------------------------------------------------------------------------


def log_directories(prefix: str, version: int) -> Talk:
    name = f"{prefix}a"
    yield create(topic(name, 2, retention_ms="-1"))
    yield produce(name, 1000, 2000)
    for partitions in ([0], [0, 1], [5], []):
        asked = DescribableLogDirTopic(topic=name, partitions=partitions)
        yield DescribeLogDirsRequest(topics=[asked])
    yield DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=f"{prefix}none", partitions=[0])]
    )
    yield DescribeLogDirsRequest(topics=[])
    yield DescribeLogDirsRequest(topics=None)


def moves_that_cannot_be(prefix: str, version: int) -> Talk:
    name = f"{prefix}a"
    yield create(topic(name), topic(f"{prefix}{'x' * 215}"))
    described = yield DescribeLogDirsRequest(topics=[])
    own = described.results[0].log_dir
    for path, topics in (
        (own, {name: [0], f"{prefix}none": [0]}),
        (own, {name: [7]}),
        (own, {f"{prefix}{'x' * 215}": [0]}),
        ("/no/such/dir", {name: [0]}),
        ("/no/such/dir", {f"{prefix}none": [0]}),
        ("relative", {name: [0]}),
        ("", {name: [0]}),
    ):
        moved = [AlterReplicaLogDirTopic(name=t, partitions=p) for t, p in topics.items()]
        yield AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=moved)])
    yield AlterReplicaLogDirsRequest(dirs=[])


def replicas_that_move(prefix: str, version: int) -> Talk:
    """For brokers with two log directories."""
    name = f"{prefix}a"
    yield create(topic(name, retention_ms="-1"))
    yield produce(name, 1000, 2000)
    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=name, partitions=[0])])
    described = yield asked
    here, there = sorted(
        (result.log_dir for result in described.results),
        key=lambda path: not any(r.topics for r in described.results if r.log_dir == path),
    )
    moved = [AlterReplicaLogDirTopic(name=name, partitions=[0])]
    for path in (here, there, there):
        yield AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=moved)])
    yield Until(asked, lambda seen: _where(seen) == [(there, False)])
    yield produce(name, 3000, 4000)
    yield asked


def _where(described: Any) -> list[tuple[str, bool]]:
    """The directories that the partitions are in, and whether they are future ones."""
    return [
        (result.log_dir, partition.is_future_key)
        for result in described.results
        for found in result.topics
        for partition in found.partitions
    ]


# --- features -------------------------------------------------------------------------------------


def unknown_features(prefix: str, version: int) -> Talk:
    for feature, level, downgrade, upgrade_type in (
        ("", 1, False, 1),
        ("x", 1, False, 1),
        ("x", 0, False, 1),
        ("x", 0, True, 2),
        ("x", -1, True, 3),
        ("x", 5, True, 2),
        ("x", 1, False, 9),
        ("metadata.version", 7, False, 1),
    ):
        kind = {"upgrade_type": upgrade_type} if version >= 1 else {"allow_downgrade": downgrade}
        update = FeatureUpdateKey(feature=feature, max_version_level=level, **kind)
        yield UpdateFeaturesRequest(feature_updates=[update])
    twice = [FeatureUpdateKey(feature="y", max_version_level=level) for level in (0, 1)]
    yield UpdateFeaturesRequest(feature_updates=[*twice])
    yield UpdateFeaturesRequest(feature_updates=[])


EXCHANGES = [
    Exchange(DescribeClusterRequest, the_cluster),
    *(
        Exchange(ElectLeadersRequest, build)
        for build in (elections_nobody_needs, elections_of_the_dead)
    ),
    *(
        Exchange(AlterPartitionReassignmentsRequest, build)
        for build in (refused_reassignments, reassignments_that_are_done_at_once)
    ),
    Exchange(ListPartitionReassignmentsRequest, reassignments_under_way),
    Exchange(DescribeLogDirsRequest, log_directories),
    Exchange(AlterReplicaLogDirsRequest, moves_that_cannot_be),
    Exchange(UpdateFeaturesRequest, unknown_features),
]
