"""Create topics.

Versions:
    v1 validate only
    v2 throttle time
    v4 broker defaults for partitions and replicas (KIP-464)
    v5 flexible; the created configuration (KIP-525)
    v6 THROTTLING_QUOTA_EXCEEDED (KIP-599)
    v7 topic ids (KIP-516)
"""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class CreatableReplicaAssignment(Struct):
    partition_index: int = wire("int32")
    broker_ids: list[int] = wire("[]int32")


class CreatableTopicConfig(Struct):
    name: str = wire("string")
    value: str | None = wire("string", nullable=0)


class CreatableTopic(Struct):
    name: str = wire("string")
    num_partitions: int = wire("int32")
    replication_factor: int = wire("int16")
    assignments: list[CreatableReplicaAssignment] = wire([CreatableReplicaAssignment])
    configs: list[CreatableTopicConfig] = wire([CreatableTopicConfig])


class CreateTopicsRequest(Request["CreateTopicsResponse"], api_key=19, versions=(0, 7), flexible=5):
    """Topics to create, by number of partitions or by assignment."""

    topics: list[CreatableTopic] = wire([CreatableTopic])
    timeout_ms: int = wire("int32", default=60000)
    validate_only: bool = wire("bool", since=1)


class CreatableTopicConfigs(Struct):
    name: str = wire("string", since=5)
    value: str | None = wire("string", since=5, nullable=5)
    read_only: bool = wire("bool", since=5)
    config_source: int = wire("int8", since=5, default=-1, ignorable=True)
    is_sensitive: bool = wire("bool", since=5)


class CreatableTopicResult(Struct):
    name: str = wire("string")
    topic_id: Uuid = wire("uuid", since=7, ignorable=True)
    error_code: int = wire("int16")
    error_message: str | None = wire("string", since=1, nullable=0, ignorable=True)
    topic_config_error_code: int = wire("int16", since=5, tag=0, ignorable=True)
    num_partitions: int = wire("int32", since=5, default=-1, ignorable=True)
    replication_factor: int = wire("int16", since=5, default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = wire(
        [CreatableTopicConfigs], since=5, nullable=5, ignorable=True
    )


class CreateTopicsResponse(Response, versions=(0, 7), flexible=5):
    """The result of each."""

    throttle_time_ms: int = wire("int32", since=2, ignorable=True)
    topics: list[CreatableTopicResult] = wire([CreatableTopicResult])
