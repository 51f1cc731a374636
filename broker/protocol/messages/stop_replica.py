"""The controller tells a broker to stop, and perhaps delete, replicas.

Versions:
    v1 grouped by topic, broker epoch (KIP-380)
    v2 flexible
    v3 leader epoch and deletion per partition (KIP-570)
    v4 sent by a KRaft controller (KIP-866)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class StopReplicaPartitionV0(Struct):
    topic_name: str = wire("string", until=0)
    partition_index: int = wire("int32", until=0)


class StopReplicaTopicV1(Struct):
    name: str = wire("string", since=1, until=2)
    partition_indexes: list[int] = wire("[]int32", since=1, until=2)


class StopReplicaPartitionState(Struct):
    partition_index: int = wire("int32", since=3)
    leader_epoch: int = wire("int32", since=3, default=-1)
    delete_partition: bool = wire("bool", since=3)


class StopReplicaTopicState(Struct):
    topic_name: str = wire("string", since=3)
    partition_states: list[StopReplicaPartitionState] = wire([StopReplicaPartitionState], since=3)


class StopReplicaRequest(Request["StopReplicaResponse"], api_key=5, versions=(0, 4), flexible=2):
    """Replicas to stop."""

    controller_id: int = wire("int32")
    is_k_raft_controller: bool = wire("bool", since=4)
    controller_epoch: int = wire("int32")
    broker_epoch: int = wire("int64", since=1, default=-1, ignorable=True)
    delete_partitions: bool = wire("bool", until=2)
    ungrouped_partitions: list[StopReplicaPartitionV0] = wire([StopReplicaPartitionV0], until=0)
    topics: list[StopReplicaTopicV1] = wire([StopReplicaTopicV1], since=1, until=2)
    topic_states: list[StopReplicaTopicState] = wire([StopReplicaTopicState], since=3)


class StopReplicaPartitionError(Struct):
    topic_name: str = wire("string")
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


class StopReplicaResponse(Response, versions=(0, 4), flexible=2):
    """The replicas that could not be stopped."""

    error_code: int = wire("int16")
    partition_errors: list[StopReplicaPartitionError] = wire([StopReplicaPartitionError])
