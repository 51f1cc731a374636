"""The controller tells a broker which partitions it leads or follows.

Versions:
    v2 grouped by topic, broker epoch (KIP-380)
    v3 adding and removing replicas (KIP-455)
    v4 flexible
    v5 topic ids (KIP-516)
    v6 recovery state (KIP-704)
    v7 sent by a KRaft controller (KIP-866)
"""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class LeaderAndIsrPartitionState(Struct):
    topic_name: str = wire("string", until=1, ignorable=True)
    partition_index: int = wire("int32")
    controller_epoch: int = wire("int32")
    leader: int = wire("int32")
    leader_epoch: int = wire("int32")
    isr: list[int] = wire("[]int32")
    partition_epoch: int = wire("int32")
    replicas: list[int] = wire("[]int32")
    adding_replicas: list[int] = wire("[]int32", since=3, ignorable=True)
    removing_replicas: list[int] = wire("[]int32", since=3, ignorable=True)
    is_new: bool = wire("bool", since=1, ignorable=True)
    leader_recovery_state: int = wire("int8", since=6)


class LeaderAndIsrTopicState(Struct):
    topic_name: str = wire("string", since=2)
    topic_id: Uuid = wire("uuid", since=5, ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = wire([LeaderAndIsrPartitionState], since=2)


class LeaderAndIsrLiveLeader(Struct):
    broker_id: int = wire("int32")
    host_name: str = wire("string")
    port: int = wire("int32")


class LeaderAndIsrRequest(Request["LeaderAndIsrResponse"], api_key=4, versions=(0, 7), flexible=4):
    """Leader, ISR and replicas of partitions on the receiving broker."""

    controller_id: int = wire("int32")
    is_k_raft_controller: bool = wire("bool", since=7)
    controller_epoch: int = wire("int32")
    broker_epoch: int = wire("int64", since=2, default=-1, ignorable=True)
    type: int = wire("int8", since=5)
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = wire(
        [LeaderAndIsrPartitionState], until=1
    )
    topic_states: list[LeaderAndIsrTopicState] = wire([LeaderAndIsrTopicState], since=2)
    live_leaders: list[LeaderAndIsrLiveLeader] = wire([LeaderAndIsrLiveLeader])


class LeaderAndIsrPartitionError(Struct):
    topic_name: str = wire("string", until=4, ignorable=True)
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid = wire("uuid", since=5)
    partition_errors: list[LeaderAndIsrPartitionError] = wire([LeaderAndIsrPartitionError], since=5)


class LeaderAndIsrResponse(Response, versions=(0, 7), flexible=4):
    """The partitions that could not be made leader or follower; a version has one of the arrays."""

    error_code: int = wire("int16")
    partition_errors: list[LeaderAndIsrPartitionError] = wire(
        [LeaderAndIsrPartitionError], until=4, ignorable=True
    )
    topics: list[LeaderAndIsrTopicError] = wire([LeaderAndIsrTopicError], since=5, ignorable=True)
