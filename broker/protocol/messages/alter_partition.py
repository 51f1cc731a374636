"""A leader asks the controller to change the ISR (KIP-497).

Versions:
    v1 recovery state (KIP-704)
    v2 topic ids (KIP-841)
    v3 broker epochs in the ISR (KIP-903)
"""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class BrokerState(Struct):
    broker_id: int = wire("int32", since=3)
    broker_epoch: int = wire("int64", since=3, default=-1)


class RequestPartitionData(Struct):
    partition_index: int = wire("int32")
    leader_epoch: int = wire("int32")
    new_isr: list[int] = wire("[]int32", until=2)
    new_isr_with_epochs: list[BrokerState] = wire([BrokerState], since=3)
    leader_recovery_state: int = wire("int8", since=1)
    partition_epoch: int = wire("int32")


class RequestTopicData(Struct):
    topic_name: str = wire("string", until=1, ignorable=True)
    topic_id: Uuid = wire("uuid", since=2, ignorable=True)
    partitions: list[RequestPartitionData] = wire([RequestPartitionData])


class AlterPartitionRequest(
    Request["AlterPartitionResponse"], api_key=56, versions=(0, 3), flexible=0
):
    """The new ISR of each partition."""

    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64", default=-1)
    topics: list[RequestTopicData] = wire([RequestTopicData])


class ResponsePartitionData(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")
    leader_id: int = wire("int32")
    leader_epoch: int = wire("int32")
    isr: list[int] = wire("[]int32")
    leader_recovery_state: int = wire("int8", since=1, ignorable=True)
    partition_epoch: int = wire("int32")


class ResponseTopicData(Struct):
    topic_name: str = wire("string", until=1, ignorable=True)
    topic_id: Uuid = wire("uuid", since=2, ignorable=True)
    partitions: list[ResponsePartitionData] = wire([ResponsePartitionData])


class AlterPartitionResponse(Response, versions=(0, 3), flexible=0):
    """The state the controller decided."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    topics: list[ResponseTopicData] = wire([ResponseTopicData])
