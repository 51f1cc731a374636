"""The APIs by permission matrix: each request, and the permissions that it needs.

A case is sent once without any of its permissions, and once without each of them. Names of topics
begin with `m-`; `{n}` in them is replaced, so that no two requests create the same topic.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from broker.model import Uuid
from broker.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    controlled_shutdown,
    delete_groups,
    delete_records,
    delete_topics,
    describe_client_quotas,
    describe_cluster,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_features,
    update_metadata,
    write_txn_markers,
)
from broker.protocol.messages import add_partitions_to_txn as add_partitions
from broker.protocol.messages import allocate_producer_ids as allocate
from broker.protocol.messages import alter_client_quotas as alter_quotas
from broker.protocol.messages import alter_configs as alter
from broker.protocol.messages import alter_partition as alter_isr
from broker.protocol.messages import alter_partition_reassignments as reassign
from broker.protocol.messages import alter_replica_log_dirs as alter_dirs
from broker.protocol.messages import alter_user_scram_credentials as alter_scram
from broker.protocol.messages import consumer_group_describe as new_describe
from broker.protocol.messages import consumer_group_heartbeat as new_heartbeat
from broker.protocol.messages import create_acls as creating
from broker.protocol.messages import create_partitions as grow
from broker.protocol.messages import create_topics as create
from broker.protocol.messages import delete_acls as deleting
from broker.protocol.messages import describe_acls as describing
from broker.protocol.messages import describe_configs as describe
from broker.protocol.messages import describe_user_scram_credentials as describe_scram
from broker.protocol.messages import incremental_alter_configs as incremental
from broker.protocol.messages import list_partition_reassignments as list_reassignments
from broker.protocol.messages import offset_for_leader_epoch as epochs
from broker.protocol.schema import Request
from broker.security.acls import (
    CLUSTER_NAME,
    AclOperation,
    ResourcePattern,
    ResourceType,
)
from tests.conformance.exchange import carried
from tests.log.support import produced

OP = AclOperation
TOPIC, OTHER, MISSING, GROUP, TXN = "m-topic", "m-other", "m-missing", "m-group", "m-txn"
"""TOPIC and OTHER exist, with records; GROUP has committed offsets; TXN an open transaction."""

Grant = tuple[AclOperation, ResourcePattern]


def on_topic(operation: AclOperation, name: str = TOPIC) -> Grant:
    return operation, ResourcePattern(ResourceType.TOPIC, name)


def on_group(operation: AclOperation, name: str = GROUP) -> Grant:
    return operation, ResourcePattern(ResourceType.GROUP, name)


def on_txn(operation: AclOperation, name: str = TXN) -> Grant:
    return operation, ResourcePattern(ResourceType.TRANSACTIONAL_ID, name)


def on_cluster(operation: AclOperation) -> Grant:
    return operation, ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)


@dataclass(frozen=True)
class Known:
    """What a request may need from the broker that it is sent to."""

    topic_id: Uuid
    missing_id: Uuid = field(default_factory=lambda: Uuid(bytes(15) + b"\x09"))


Build = Callable[[int, str, Known], Any]
"""From the version, a unique text for new names, and what is known of the broker."""


@dataclass(frozen=True)
class Case:
    """One request and its permissions.

    `is_complete`: it is also sent with all permissions; for requests that change nothing.
    `skipped`: positions of permissions without which the request would still change something that
    other cases need.
    """

    name: str
    api: type[Request[Any]]
    build: Build
    grants: tuple[Grant, ...]
    is_complete: bool = False
    versions: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()

    def all_versions(self) -> Iterator[int]:
        """Those that are sent; of APIs without a choice, the lowest and the highest."""
        return iter(self.versions or sorted(set(self.api.versions)))

    def variants(self, unique: str) -> Iterator[tuple[str, list[Grant]]]:
        """A name, and the permissions that the client has."""
        grants = [
            (operation, pattern._replace(name=pattern.name.replace("{n}", unique)))
            for operation, pattern in self.grants
        ]
        yield "none", []
        for missing, (operation, pattern) in enumerate(self.grants):
            if len(grants) > 1 and missing not in self.skipped:
                kept = grants[:missing] + grants[missing + 1 :]
                yield f"without {operation.name} {pattern.resource_type.name} {missing}", kept
        if self.is_complete:
            yield "all", grants


def partition_list(api: Any, topic_field: str, index_field: str, *names: str) -> list[Any]:
    return [api(**{topic_field: name, index_field: [0]}) for name in names]


def _produce(version: int, unique: str, known: Known) -> Any:
    return _produced(version, None, transactional=False)


def _produced(version: int, transactional_id: str | None, *, transactional: bool) -> Any:
    records = produced("x", producer_id=9, transactional=transactional)
    data = [produce.PartitionProduceData(index=0, records=records)]
    return carried(
        produce.ProduceRequest,
        version,
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=5000,
        topic_data=[
            produce.TopicProduceData(name=name, partition_data=data) for name in (TOPIC, MISSING)
        ],
    )


def _fetch(version: int, unique: str, known: Known, replica_id: int = -1) -> Any:
    asked = [fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    topics = [
        fetch.FetchTopic(topic=TOPIC, partitions=asked),
        fetch.FetchTopic(topic=MISSING, partitions=asked),
    ]
    if version >= 13:
        topics = [
            fetch.FetchTopic(topic_id=known.topic_id, partitions=asked),
            fetch.FetchTopic(topic_id=known.missing_id, partitions=asked),
        ]
    fields: dict[str, Any] = {"replica_id": replica_id}
    if version >= 15:
        fields = {"replica_state": fetch.ReplicaState(replica_id=replica_id)}
    return carried(fetch.FetchRequest, version, max_wait_ms=0, min_bytes=1, topics=topics, **fields)


def _follower_fetch(version: int, unique: str, known: Known) -> Any:
    return _fetch(version, unique, known, replica_id=99)


def _metadata_by_name(version: int, unique: str, known: Known, **more: Any) -> Any:
    names = [metadata.MetadataRequestTopic(name=name) for name in (TOPIC, MISSING)]
    fields = {"topics": names, "allow_auto_topic_creation": False} | more
    return carried(metadata.MetadataRequest, version, **fields)


def _metadata_operations(version: int, unique: str, known: Known) -> Any:
    return _metadata_by_name(
        version,
        unique,
        known,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


def _metadata_of_all(version: int, unique: str, known: Known) -> Any:
    return carried(metadata.MetadataRequest, version, topics=[] if version == 0 else None)


def _metadata_by_id(version: int, unique: str, known: Known) -> Any:
    ids = (known.topic_id, known.missing_id)
    topics = [metadata.MetadataRequestTopic(topic_id=i, name=None) for i in ids]
    return metadata.MetadataRequest(topics=topics)


def _metadata_creating(version: int, unique: str, known: Known) -> Any:
    topics = [metadata.MetadataRequestTopic(name=f"m-auto-{unique}")]
    return carried(metadata.MetadataRequest, version, topics=topics)


def _leader_and_isr(version: int, unique: str, known: Known) -> Any:
    state = leader_and_isr.LeaderAndIsrPartitionState(
        topic_name=TOPIC, partition_index=0, leader=1, leader_epoch=99, isr=[1], replicas=[1]
    )
    return carried(
        leader_and_isr.LeaderAndIsrRequest,
        version,
        controller_id=1,
        controller_epoch=99,
        broker_epoch=99,
        ungrouped_partition_states=[state],
        topic_states=[
            leader_and_isr.LeaderAndIsrTopicState(
                topic_name=TOPIC, topic_id=known.topic_id, partition_states=[state]
            )
        ],
    )


def _stop_replica(version: int, unique: str, known: Known) -> Any:
    states = [stop_replica.StopReplicaPartitionState(partition_index=0, delete_partition=True)]
    return carried(
        stop_replica.StopReplicaRequest,
        version,
        controller_id=1,
        controller_epoch=99,
        broker_epoch=99,
        delete_partitions=True,
        ungrouped_partitions=[
            stop_replica.StopReplicaPartitionV0(topic_name=TOPIC, partition_index=0)
        ],
        topics=[stop_replica.StopReplicaTopicV1(name=TOPIC, partition_indexes=[0])],
        topic_states=[
            stop_replica.StopReplicaTopicState(topic_name=TOPIC, partition_states=states)
        ],
    )


def _commit(version: int, unique: str, known: Known) -> Any:
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    return carried(
        offset_commit.OffsetCommitRequest,
        version,
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[
            offset_commit.OffsetCommitRequestTopic(name=name, partitions=[partition])
            for name in (TOPIC, MISSING)
        ],
    )


def _txn_commit(version: int, unique: str, known: Known) -> Any:
    partition = txn_offset_commit.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=7
    )
    return carried(
        txn_offset_commit.TxnOffsetCommitRequest,
        version,
        transactional_id=TXN,
        group_id=GROUP,
        producer_id=5,
        producer_epoch=0,
        topics=[
            txn_offset_commit.TxnOffsetCommitRequestTopic(name=name, partitions=[partition])
            for name in (TOPIC, MISSING)
        ],
    )


def _offset_fetch(version: int, unique: str, known: Known, *, every: bool = False) -> Any:
    if version >= 8:
        topics = partition_list(
            offset_fetch.OffsetFetchRequestTopics, "name", "partition_indexes", TOPIC, OTHER
        )
        group = offset_fetch.OffsetFetchRequestGroup(
            group_id=GROUP, topics=None if every else topics
        )
        return offset_fetch.OffsetFetchRequest(groups=[group])
    topics = partition_list(
        offset_fetch.OffsetFetchRequestTopic, "name", "partition_indexes", TOPIC, OTHER
    )
    return offset_fetch.OffsetFetchRequest(group_id=GROUP, topics=None if every else topics)


def _offset_fetch_of_all(version: int, unique: str, known: Known) -> Any:
    return _offset_fetch(version, unique, known, every=True)


def _find(version: int, key_type: int, *keys: str) -> Any:
    fields: dict[str, Any] = {"key_type": key_type}
    fields |= {"coordinator_keys": list(keys)} if version >= 4 else {"key": keys[0]}
    return carried(find_coordinator.FindCoordinatorRequest, version, **fields)


def _join(version: int, unique: str, known: Known) -> Any:
    return carried(
        join_group.JoinGroupRequest,
        version,
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def _leave(version: int, unique: str, known: Known) -> Any:
    members = [leave_group.MemberIdentity(member_id="x")]
    fields = {"members": members} if version >= 3 else {"member_id": "x"}
    return carried(leave_group.LeaveGroupRequest, version, group_id=GROUP, **fields)


def _create(version: int, unique: str, known: Known, **more: Any) -> Any:
    topic = create.CreatableTopic(name=f"m-new-{unique}", num_partitions=1, replication_factor=1)
    return carried(create.CreateTopicsRequest, version, topics=[topic], timeout_ms=9000, **more)


def _delete_by_id(version: int, unique: str, known: Known) -> Any:
    states = [
        delete_topics.DeleteTopicState(name=None, topic_id=i)
        for i in (known.topic_id, known.missing_id)
    ]
    return delete_topics.DeleteTopicsRequest(topics=states, timeout_ms=9000)


def _delete_by_name(version: int, unique: str, known: Known) -> Any:
    if version >= 6:
        states = [delete_topics.DeleteTopicState(name=name) for name in (TOPIC, MISSING)]
        return delete_topics.DeleteTopicsRequest(topics=states, timeout_ms=9000)
    return delete_topics.DeleteTopicsRequest(topic_names=[TOPIC, MISSING], timeout_ms=9000)


def _delete_records(version: int, unique: str, known: Known) -> Any:
    partitions = [delete_records.DeleteRecordsPartition(partition_index=0, offset=1)]
    return delete_records.DeleteRecordsRequest(
        topics=[
            delete_records.DeleteRecordsTopic(name=name, partitions=partitions)
            for name in (TOPIC, MISSING)
        ],
        timeout_ms=9000,
    )


def _add_partitions(version: int, unique: str, known: Known) -> Any:
    names = (TOPIC, OTHER, "__consumer_offsets")
    topics = partition_list(add_partitions.AddPartitionsToTxnTopic, "name", "partitions", *names)
    if version >= 4:
        transaction = add_partitions.AddPartitionsToTxnTransaction(
            transactional_id=TXN, producer_id=5, producer_epoch=0, topics=topics
        )
        return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[transaction])
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_producer_id=5,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics,
    )


def _markers(version: int, unique: str, known: Known) -> Any:
    topics = partition_list(
        write_txn_markers.WritableTxnMarkerTopic, "name", "partition_indexes", TOPIC
    )
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=5, producer_epoch=0, transaction_result=True, topics=topics
    )
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


_FILTER: dict[str, Any] = {
    "resource_type_filter": 2,
    "resource_name_filter": "m-nothing",
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def _create_acls(version: int, unique: str, known: Known) -> Any:
    acl = creating.AclCreation(
        resource_type=2,
        resource_name="m-acl",
        principal="User:x",
        host="*",
        operation=3,
        permission_type=3,
    )
    return creating.CreateAclsRequest(creations=[acl])


def _describe_configs(version: int, unique: str, known: Known) -> Any:
    keys = ["retention.ms"]
    return describe.DescribeConfigsRequest(
        resources=[
            describe.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
            for kind, name in ((2, TOPIC), (2, MISSING), (4, "1"), (8, "1"))
        ]
    )


def _incremental(version: int, unique: str, known: Known) -> Any:
    def change(name: str, value: str) -> list[Any]:
        return [incremental.AlterableConfig(name=name, config_operation=0, value=value)]

    return incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=change(*config)
            )
            for kind, name, config in (
                (2, TOPIC, ("retention.ms", "1000")),
                (4, "1", ("log.cleaner.threads", "2")),
                (8, "1", ("root", "INFO")),
            )
        ]
    )


def _alter_configs(version: int, unique: str, known: Known) -> Any:
    return alter.AlterConfigsRequest(
        resources=[
            alter.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter.AlterableConfig(name=config, value=value)],
            )
            for kind, name, config, value in (
                (2, TOPIC, "retention.ms", "1000"),
                (4, "1", "log.cleaner.threads", "2"),
            )
        ]
    )


def _alter_quotas(version: int, unique: str, known: Known) -> Any:
    entry = alter_quotas.RequestEntryData(
        entity=[alter_quotas.EntityData(entity_type="user", entity_name="m-user")],
        ops=[alter_quotas.OpData(key="producer_byte_rate", value=1000.0)],
    )
    return alter_quotas.AlterClientQuotasRequest(entries=[entry])


def _alter_scram(version: int, unique: str, known: Known) -> Any:
    upsertion = alter_scram.ScramCredentialUpsertion(
        name="m-user", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"x" * 32
    )
    return alter_scram.AlterUserScramCredentialsRequest(upsertions=[upsertion])


def _log_dirs(version: int, unique: str, known: Known) -> Any:
    topics = partition_list(describe_log_dirs.DescribableLogDirTopic, "topic", "partitions", TOPIC)
    return describe_log_dirs.DescribeLogDirsRequest(topics=topics)


def _alter_log_dirs(version: int, unique: str, known: Known) -> Any:
    topics = partition_list(alter_dirs.AlterReplicaLogDirTopic, "name", "partitions", TOPIC)
    return alter_dirs.AlterReplicaLogDirsRequest(
        dirs=[alter_dirs.AlterReplicaLogDir(path="/nowhere", topics=topics)]
    )


def _grow(version: int, unique: str, known: Known) -> Any:
    topics = [
        grow.CreatePartitionsTopic(name=name, count=9, assignments=None)
        for name in (TOPIC, MISSING)
    ]
    return grow.CreatePartitionsRequest(topics=topics, timeout_ms=9000)


def _elect(version: int, unique: str, known: Known) -> Any:
    topics = partition_list(elect_leaders.TopicPartitions, "topic", "partitions", TOPIC)
    return carried(
        elect_leaders.ElectLeadersRequest, version, topic_partitions=topics, timeout_ms=9000
    )


def _reassign(version: int, unique: str, known: Known) -> Any:
    partition = reassign.ReassignablePartition(partition_index=0, replicas=[1])
    topics = [reassign.ReassignableTopic(name=TOPIC, partitions=[partition])]
    return reassign.AlterPartitionReassignmentsRequest(topics=topics)


def _offset_delete(version: int, unique: str, known: Known) -> Any:
    partition = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topics = [
        offset_delete.OffsetDeleteRequestTopic(name=name, partitions=[partition])
        for name in (TOPIC, MISSING)
    ]
    return offset_delete.OffsetDeleteRequest(group_id=GROUP, topics=topics)


def _list_offsets(version: int, unique: str, known: Known) -> Any:
    fields = {"max_num_offsets": 1} if version == 0 else {}
    partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1, **fields)
    topics = [
        list_offsets.ListOffsetsTopic(name=name, partitions=[partition])
        for name in (TOPIC, MISSING)
    ]
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)


def _epochs(version: int, unique: str, known: Known) -> Any:
    partition = epochs.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topics = [
        epochs.OffsetForLeaderTopic(topic=name, partitions=[partition]) for name in (TOPIC, MISSING)
    ]
    return carried(epochs.OffsetForLeaderEpochRequest, version, topics=topics)


def _producers(version: int, unique: str, known: Known) -> Any:
    topics = partition_list(
        describe_producers.TopicRequest, "name", "partition_indexes", TOPIC, MISSING
    )
    return describe_producers.DescribeProducersRequest(topics=topics)


def _simple(api: type[Request[Any]], **fields: Any) -> Build:
    return lambda version, unique, known: carried(api, version, **fields)


_CLUSTER_ACTION = (on_cluster(OP.CLUSTER_ACTION),)
_READ_GROUP = (on_group(OP.READ),)

CASES: tuple[Case, ...] = (
    Case("produce", produce.ProduceRequest, _produce, (on_topic(OP.WRITE),), versions=(3, 9, 11)),
    Case(
        "produce-transactional",
        produce.ProduceRequest,
        lambda v, u, k: _produced(v, TXN, transactional=True),
        (on_txn(OP.WRITE), on_topic(OP.WRITE)),
        versions=(3, 11),
    ),
    Case(
        "produce-transactional-without-id",
        produce.ProduceRequest,
        lambda v, u, k: _produced(v, None, transactional=True),
        (on_topic(OP.WRITE),),
        versions=(11,),
    ),
    Case(
        "fetch",
        fetch.FetchRequest,
        _fetch,
        (on_topic(OP.READ), on_topic(OP.READ, MISSING)),
        versions=(4, 12, 17),
    ),
    Case(
        "fetch-as-follower", fetch.FetchRequest, _follower_fetch, _CLUSTER_ACTION, versions=(4, 12)
    ),
    Case(
        "list-offsets",
        list_offsets.ListOffsetsRequest,
        _list_offsets,
        (on_topic(OP.DESCRIBE), on_topic(OP.DESCRIBE, MISSING)),
        is_complete=True,
    ),
    Case(
        "metadata-by-name",
        metadata.MetadataRequest,
        _metadata_by_name,
        (on_topic(OP.DESCRIBE), on_topic(OP.DESCRIBE, MISSING)),
        is_complete=True,
        versions=(4, 8, 12),
    ),
    Case(
        "metadata-by-id",
        metadata.MetadataRequest,
        _metadata_by_id,
        (on_topic(OP.DESCRIBE),),
        is_complete=True,
        versions=(12,),
    ),
    Case(
        "metadata-of-all",
        metadata.MetadataRequest,
        _metadata_of_all,
        (on_topic(OP.READ), on_topic(OP.DELETE, OTHER)),
        is_complete=True,
    ),
    Case(
        "metadata-creating",
        metadata.MetadataRequest,
        _metadata_creating,
        (on_topic(OP.DESCRIBE, "m-auto-{n}"), on_topic(OP.CREATE, "m-auto-{n}")),
        versions=(4, 12),
    ),
    Case(
        "metadata-operations",
        metadata.MetadataRequest,
        _metadata_operations,
        (
            on_topic(OP.READ),
            on_topic(OP.ALTER_CONFIGS),
            on_topic(OP.ALL, MISSING),
            on_cluster(OP.ALTER),
            on_cluster(OP.IDEMPOTENT_WRITE),
        ),
        is_complete=True,
        versions=(8, 10, 12),
    ),
    Case("leader-and-isr", leader_and_isr.LeaderAndIsrRequest, _leader_and_isr, _CLUSTER_ACTION),
    Case("stop-replica", stop_replica.StopReplicaRequest, _stop_replica, _CLUSTER_ACTION),
    Case(
        "update-metadata",
        update_metadata.UpdateMetadataRequest,
        _simple(
            update_metadata.UpdateMetadataRequest,
            controller_id=1,
            controller_epoch=99,
            broker_epoch=99,
        ),
        _CLUSTER_ACTION,
    ),
    Case(
        "controlled-shutdown",
        controlled_shutdown.ControlledShutdownRequest,
        _simple(controlled_shutdown.ControlledShutdownRequest, broker_id=1, broker_epoch=99),
        _CLUSTER_ACTION,
        versions=(1, 3),
    ),
    Case(
        "offset-commit",
        offset_commit.OffsetCommitRequest,
        _commit,
        (on_group(OP.READ), on_topic(OP.READ), on_topic(OP.READ, MISSING)),
        versions=(0, 1, 8),
        skipped=(2,),
    ),
    Case(
        "offset-fetch",
        offset_fetch.OffsetFetchRequest,
        _offset_fetch,
        (on_group(OP.DESCRIBE), on_topic(OP.DESCRIBE), on_topic(OP.DESCRIBE, OTHER)),
        is_complete=True,
        versions=(0, 1, 2, 7, 9),
    ),
    Case(
        "offset-fetch-of-all",
        offset_fetch.OffsetFetchRequest,
        _offset_fetch_of_all,
        (on_group(OP.DESCRIBE), on_topic(OP.DESCRIBE), on_topic(OP.DESCRIBE, OTHER)),
        is_complete=True,
        versions=(2, 9),
    ),
    Case(
        "find-group-coordinator",
        find_coordinator.FindCoordinatorRequest,
        lambda v, u, k: _find(v, 0, GROUP, "m-unknown"),
        (on_group(OP.DESCRIBE), on_group(OP.DESCRIBE, "m-unknown")),
        versions=(0, 3, 6),
    ),
    Case(
        "find-transaction-coordinator",
        find_coordinator.FindCoordinatorRequest,
        lambda v, u, k: _find(v, 1, TXN),
        (on_txn(OP.DESCRIBE),),
        versions=(1, 3, 6),
    ),
    Case(
        "find-share-coordinator",
        find_coordinator.FindCoordinatorRequest,
        lambda v, u, k: _find(v, 2, "g:AAAAAAAAAAAAAAAAAAAAAA:0"),
        _CLUSTER_ACTION,
        is_complete=True,
        versions=(5, 6),
    ),
    Case("join-group", join_group.JoinGroupRequest, _join, _READ_GROUP, versions=(0, 5, 9)),
    Case(
        "heartbeat",
        heartbeat.HeartbeatRequest,
        _simple(heartbeat.HeartbeatRequest, group_id=GROUP, generation_id=1, member_id="x"),
        _READ_GROUP,
        is_complete=True,
    ),
    Case("leave-group", leave_group.LeaveGroupRequest, _leave, _READ_GROUP, is_complete=True),
    Case(
        "sync-group",
        sync_group.SyncGroupRequest,
        _simple(
            sync_group.SyncGroupRequest,
            group_id=GROUP,
            generation_id=1,
            member_id="x",
            protocol_type="consumer",
            protocol_name="range",
        ),
        _READ_GROUP,
        is_complete=True,
    ),
    Case(
        "describe-groups",
        describe_groups.DescribeGroupsRequest,
        _simple(
            describe_groups.DescribeGroupsRequest,
            groups=[GROUP, "m-unknown"],
            include_authorized_operations=True,
        ),
        (on_group(OP.DESCRIBE), on_group(OP.READ, "m-unknown")),
        is_complete=True,
    ),
    Case(
        "list-groups",
        list_groups.ListGroupsRequest,
        _simple(list_groups.ListGroupsRequest),
        (on_group(OP.DESCRIBE),),
        is_complete=True,
    ),
    Case(
        "list-groups-of-cluster",
        list_groups.ListGroupsRequest,
        _simple(list_groups.ListGroupsRequest),
        (on_cluster(OP.DESCRIBE),),
        is_complete=True,
    ),
    Case(
        "create-topics",
        create.CreateTopicsRequest,
        _create,
        (on_topic(OP.CREATE, "m-new-{n}"), on_topic(OP.DESCRIBE_CONFIGS, "m-new-{n}")),
        versions=(0, 5, 7),
    ),
    Case(
        "create-topics-on-cluster",
        create.CreateTopicsRequest,
        lambda v, u, k: _create(v, u, k, validate_only=True),
        (on_cluster(OP.CREATE),),
        is_complete=True,
        versions=(7,),
    ),
    Case(
        "delete-topics",
        delete_topics.DeleteTopicsRequest,
        _delete_by_name,
        (on_topic(OP.DELETE), on_topic(OP.DELETE, MISSING)),
        skipped=(1,),
        versions=(0, 5, 6),
    ),
    Case(
        "delete-topics-by-id",
        delete_topics.DeleteTopicsRequest,
        _delete_by_id,
        (on_topic(OP.DESCRIBE), on_topic(OP.ALTER)),
        is_complete=True,
        versions=(6,),
    ),
    Case(
        "delete-records",
        delete_records.DeleteRecordsRequest,
        _delete_records,
        (on_topic(OP.DELETE), on_topic(OP.DELETE, MISSING)),
        skipped=(1,),
    ),
    Case(
        "init-producer-id-transactional",
        init_producer_id.InitProducerIdRequest,
        _simple(
            init_producer_id.InitProducerIdRequest,
            transactional_id=TXN,
            transaction_timeout_ms=60_000,
        ),
        (on_txn(OP.WRITE),),
    ),
    Case(
        "init-producer-id-idempotent",
        init_producer_id.InitProducerIdRequest,
        _simple(
            init_producer_id.InitProducerIdRequest,
            transactional_id=None,
            transaction_timeout_ms=60_000,
        ),
        (on_cluster(OP.IDEMPOTENT_WRITE),),
    ),
    Case(
        "offset-for-leader-epoch",
        epochs.OffsetForLeaderEpochRequest,
        _epochs,
        (on_topic(OP.DESCRIBE), on_topic(OP.DESCRIBE, MISSING)),
        is_complete=True,
    ),
    Case(
        "offset-for-leader-epoch-of-a-broker",
        epochs.OffsetForLeaderEpochRequest,
        _epochs,
        _CLUSTER_ACTION,
        is_complete=True,
    ),
    Case(
        "add-partitions-to-txn",
        add_partitions_to_txn.AddPartitionsToTxnRequest,
        _add_partitions,
        (on_txn(OP.WRITE), on_topic(OP.WRITE), on_topic(OP.WRITE, OTHER)),
        is_complete=True,
        versions=(0, 3),
    ),
    Case(
        "add-partitions-to-txn-of-a-broker",
        add_partitions_to_txn.AddPartitionsToTxnRequest,
        _add_partitions,
        _CLUSTER_ACTION,
        versions=(4, 5),
    ),
    Case(
        "add-offsets-to-txn",
        add_offsets_to_txn.AddOffsetsToTxnRequest,
        _simple(
            add_offsets_to_txn.AddOffsetsToTxnRequest,
            transactional_id=TXN,
            producer_id=5,
            producer_epoch=0,
            group_id=GROUP,
        ),
        (on_txn(OP.WRITE), on_group(OP.READ)),
    ),
    Case(
        "end-txn",
        end_txn.EndTxnRequest,
        _simple(
            end_txn.EndTxnRequest,
            transactional_id=TXN,
            producer_id=5,
            producer_epoch=0,
            committed=True,
        ),
        (on_txn(OP.WRITE),),
        versions=(0, 4),
    ),
    Case("write-txn-markers", write_txn_markers.WriteTxnMarkersRequest, _markers, _CLUSTER_ACTION),
    Case(
        "txn-offset-commit",
        txn_offset_commit.TxnOffsetCommitRequest,
        _txn_commit,
        (on_txn(OP.WRITE), on_group(OP.READ), on_topic(OP.READ), on_topic(OP.READ, MISSING)),
        versions=(0, 4),
        skipped=(3,),
    ),
    Case(
        "describe-acls",
        describing.DescribeAclsRequest,
        _simple(describing.DescribeAclsRequest, **_FILTER),
        (on_cluster(OP.DESCRIBE),),
        is_complete=True,
    ),
    Case("create-acls", creating.CreateAclsRequest, _create_acls, (on_cluster(OP.ALTER),)),
    Case(
        "delete-acls",
        deleting.DeleteAclsRequest,
        _simple(deleting.DeleteAclsRequest, filters=[deleting.DeleteAclsFilter(**_FILTER)]),
        (on_cluster(OP.ALTER),),
        is_complete=True,
    ),
    Case(
        "describe-configs",
        describe.DescribeConfigsRequest,
        _describe_configs,
        (on_topic(OP.DESCRIBE_CONFIGS), on_topic(OP.DESCRIBE_CONFIGS, MISSING)),
        is_complete=True,
    ),
    Case("alter-configs", alter.AlterConfigsRequest, _alter_configs, (on_topic(OP.ALTER),)),
    Case(
        "incremental-alter-configs",
        incremental.IncrementalAlterConfigsRequest,
        _incremental,
        (on_topic(OP.ALTER),),
    ),
    Case(
        "alter-replica-log-dirs",
        alter_dirs.AlterReplicaLogDirsRequest,
        _alter_log_dirs,
        (on_cluster(OP.ALTER),),
        versions=(1, 2),
    ),
    Case(
        "describe-log-dirs",
        describe_log_dirs.DescribeLogDirsRequest,
        _log_dirs,
        (on_cluster(OP.DESCRIBE),),
        versions=(1, 3, 4),
    ),
    Case(
        "create-partitions",
        grow.CreatePartitionsRequest,
        _grow,
        (on_topic(OP.ALTER), on_topic(OP.ALTER, MISSING)),
        skipped=(1,),
    ),
    Case(
        "delete-groups",
        delete_groups.DeleteGroupsRequest,
        _simple(delete_groups.DeleteGroupsRequest, groups_names=[GROUP, "m-unknown"]),
        (on_group(OP.DELETE), on_group(OP.DELETE, "m-unknown")),
        skipped=(1,),
    ),
    Case("elect-leaders", elect_leaders.ElectLeadersRequest, _elect, (on_cluster(OP.ALTER),)),
    Case(
        "alter-partition-reassignments",
        reassign.AlterPartitionReassignmentsRequest,
        _reassign,
        (on_cluster(OP.ALTER),),
    ),
    Case(
        "list-partition-reassignments",
        list_reassignments.ListPartitionReassignmentsRequest,
        _simple(list_reassignments.ListPartitionReassignmentsRequest, topics=None),
        (on_cluster(OP.DESCRIBE),),
        is_complete=True,
    ),
    Case(
        "offset-delete",
        offset_delete.OffsetDeleteRequest,
        _offset_delete,
        (on_group(OP.DELETE), on_topic(OP.READ), on_topic(OP.READ, MISSING)),
        skipped=(2,),
    ),
    Case(
        "describe-client-quotas",
        describe_client_quotas.DescribeClientQuotasRequest,
        _simple(describe_client_quotas.DescribeClientQuotasRequest, components=[], strict=False),
        (on_cluster(OP.DESCRIBE_CONFIGS),),
        is_complete=True,
    ),
    Case(
        "alter-client-quotas",
        alter_quotas.AlterClientQuotasRequest,
        _alter_quotas,
        (on_cluster(OP.ALTER_CONFIGS),),
    ),
    Case(
        "describe-user-scram-credentials",
        describe_scram.DescribeUserScramCredentialsRequest,
        # Null means all users; Kafka fails to respond to that without the permission.
        _simple(
            describe_scram.DescribeUserScramCredentialsRequest,
            users=[describe_scram.UserName(name="m-user")],
        ),
        (on_cluster(OP.DESCRIBE),),
        is_complete=True,
    ),
    Case(
        "alter-user-scram-credentials",
        alter_scram.AlterUserScramCredentialsRequest,
        _alter_scram,
        (on_cluster(OP.ALTER),),
    ),
    Case(
        "alter-partition",
        alter_isr.AlterPartitionRequest,
        _simple(alter_isr.AlterPartitionRequest, broker_id=1, broker_epoch=99),
        _CLUSTER_ACTION,
    ),
    Case(
        "update-features",
        update_features.UpdateFeaturesRequest,
        _simple(update_features.UpdateFeaturesRequest, timeout_ms=1000),
        (on_cluster(OP.ALTER),),
    ),
    Case(
        "describe-cluster",
        describe_cluster.DescribeClusterRequest,
        _simple(
            describe_cluster.DescribeClusterRequest, include_cluster_authorized_operations=True
        ),
        (on_cluster(OP.DESCRIBE), on_cluster(OP.ALTER_CONFIGS)),
        is_complete=True,
    ),
    Case(
        "describe-producers",
        describe_producers.DescribeProducersRequest,
        _producers,
        (on_topic(OP.READ),),
    ),
    Case(
        "describe-transactions",
        describe_transactions.DescribeTransactionsRequest,
        _simple(
            describe_transactions.DescribeTransactionsRequest,
            transactional_ids=[TXN, "m-unknown"],
        ),
        (on_txn(OP.DESCRIBE), on_topic(OP.DESCRIBE), on_txn(OP.DESCRIBE, "m-unknown")),
        is_complete=True,
    ),
    Case(
        "list-transactions",
        list_transactions.ListTransactionsRequest,
        _simple(list_transactions.ListTransactionsRequest),
        (on_txn(OP.WRITE),),
        is_complete=True,
    ),
    Case(
        "allocate-producer-ids",
        allocate.AllocateProducerIdsRequest,
        _simple(allocate.AllocateProducerIdsRequest, broker_id=1, broker_epoch=99),
        _CLUSTER_ACTION,
    ),
    Case(
        "consumer-group-heartbeat",
        new_heartbeat.ConsumerGroupHeartbeatRequest,
        _simple(new_heartbeat.ConsumerGroupHeartbeatRequest, group_id=GROUP),
        _READ_GROUP,
    ),
    Case(
        "consumer-group-describe",
        new_describe.ConsumerGroupDescribeRequest,
        _simple(new_describe.ConsumerGroupDescribeRequest, group_ids=[GROUP]),
        (on_group(OP.DESCRIBE),),
    ),
)
