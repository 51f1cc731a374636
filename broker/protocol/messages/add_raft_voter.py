"""Add a voter to a KRaft quorum (KIP-853)."""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class Listener(Struct):
    name: str = wire("string")
    host: str = wire("string")
    port: int = wire("uint16")


class AddRaftVoterRequest(Request["AddRaftVoterResponse"], api_key=80, versions=(0, 0), flexible=0):
    """The new voter."""

    cluster_id: str | None = wire("string", nullable=0)
    timeout_ms: int = wire("int32")
    voter_id: int = wire("int32")
    voter_directory_id: Uuid = wire("uuid")
    listeners: list[Listener] = wire([Listener])


class AddRaftVoterResponse(Response, versions=(0, 0), flexible=0):
    """The error."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
