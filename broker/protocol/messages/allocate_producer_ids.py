"""A broker asks the controller for a block of producer ids (KIP-730)."""

from broker.protocol.schema import Request, Response, wire


class AllocateProducerIdsRequest(
    Request["AllocateProducerIdsResponse"], api_key=67, versions=(0, 0), flexible=0
):
    """The broker that requests a block."""

    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64", default=-1)


class AllocateProducerIdsResponse(Response, versions=(0, 0), flexible=0):
    """The block."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    producer_id_start: int = wire("int64")
    producer_id_len: int = wire("int32")
