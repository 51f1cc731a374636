"""Which users have SCRAM credentials (KIP-554)."""

from broker.protocol.schema import Request, Response, Struct, wire


class UserName(Struct):
    name: str = wire("string")


class DescribeUserScramCredentialsRequest(
    Request["DescribeUserScramCredentialsResponse"], api_key=50, versions=(0, 0), flexible=0
):
    """The users; null for all."""

    users: list[UserName] | None = wire([UserName], nullable=0)


class CredentialInfo(Struct):
    mechanism: int = wire("int8")
    iterations: int = wire("int32")


class DescribeUserScramCredentialsResult(Struct):
    user: str = wire("string")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    credential_infos: list[CredentialInfo] = wire([CredentialInfo])


class DescribeUserScramCredentialsResponse(Response, versions=(0, 0), flexible=0):
    """Mechanisms and iterations, never secrets."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    results: list[DescribeUserScramCredentialsResult] = wire([DescribeUserScramCredentialsResult])
