"""Elect leaders: the preferred replica, or any live one (KIP-183, KIP-460).

Versions:
    v1 unclean elections (KIP-460)
    v2 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class TopicPartitions(Struct):
    topic: str = wire("string")
    partitions: list[int] = wire("[]int32")


class ElectLeadersRequest(Request["ElectLeadersResponse"], api_key=43, versions=(0, 2), flexible=2):
    """The partitions; null for all."""

    election_type: int = wire("int8", since=1)
    topic_partitions: list[TopicPartitions] | None = wire([TopicPartitions], nullable=0)
    timeout_ms: int = wire("int32", default=60000)


class PartitionResult(Struct):
    partition_id: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)


class ReplicaElectionResult(Struct):
    topic: str = wire("string")
    partition_result: list[PartitionResult] = wire([PartitionResult])


class ElectLeadersResponse(Response, versions=(0, 2), flexible=2):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16", since=1, ignorable=True)
    replica_election_results: list[ReplicaElectionResult] = wire([ReplicaElectionResult])
