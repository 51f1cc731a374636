"""Set and delete SCRAM credentials (KIP-554)."""

from broker.protocol.schema import Request, Response, Struct, wire


class ScramCredentialDeletion(Struct):
    name: str = wire("string")
    mechanism: int = wire("int8")


class ScramCredentialUpsertion(Struct):
    name: str = wire("string")
    mechanism: int = wire("int8")
    iterations: int = wire("int32")
    salt: bytes = wire("bytes")
    salted_password: bytes = wire("bytes")


class AlterUserScramCredentialsRequest(
    Request["AlterUserScramCredentialsResponse"], api_key=51, versions=(0, 0), flexible=0
):
    """Credentials to delete and to set."""

    deletions: list[ScramCredentialDeletion] = wire([ScramCredentialDeletion])
    upsertions: list[ScramCredentialUpsertion] = wire([ScramCredentialUpsertion])


class AlterUserScramCredentialsResult(Struct):
    user: str = wire("string")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)


class AlterUserScramCredentialsResponse(Response, versions=(0, 0), flexible=0):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    results: list[AlterUserScramCredentialsResult] = wire([AlterUserScramCredentialsResult])
