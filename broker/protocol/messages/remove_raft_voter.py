"""Remove a voter from a KRaft quorum (KIP-853)."""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, wire


class RemoveRaftVoterRequest(
    Request["RemoveRaftVoterResponse"], api_key=81, versions=(0, 0), flexible=0
):
    """The voter to remove."""

    cluster_id: str | None = wire("string", nullable=0)
    voter_id: int = wire("int32")
    voter_directory_id: Uuid = wire("uuid")


class RemoveRaftVoterResponse(Response, versions=(0, 0), flexible=0):
    """The error."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
