"""Handle DescribeUserScramCredentials (KIP-554): list mechanisms and iterations, never secrets.

Deliberately missing: nothing.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.api.scram_credentials import MECHANISMS, iterations_of, node_of
from broker.errors import ApiError, ErrorCode
from broker.metadata.client_configs import ClientConfigStore
from broker.metadata.znodes.configs import desanitize
from broker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from broker.security.acls import AclOperation

_UNEXPECTED: Final = "The server experienced an unexpected error when processing the request."
"""Kafka's message for a stored credential that it cannot read."""


async def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Describe the users named, or, if none is, all that have credentials, sorted by name."""
    authorize_cluster(context, AclOperation.DESCRIBE)
    store = context.services.client_configs
    times = Counter(user.name for user in request.users or ())
    if times:
        results = [await _named(user, count, store) for user, count in times.items()]
    else:
        stored = await store.read_all("users")
        configs = {desanitize(node): c for node, c in stored.items() if _has_credential(c)}
        results = [_result(user, config) for user, config in sorted(configs.items())]
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


async def _named(
    user: str, count: int, store: ClientConfigStore
) -> DescribeUserScramCredentialsResult:
    """One user that the request names `count` times."""
    try:
        return _result(user, await _config(user, count, store))
    except ApiError as error:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=error.code, error_message=error.message
        )


async def _config(user: str, count: int, store: ClientConfigStore) -> Mapping[str, str]:
    if not user:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty")
    if count > 1:
        problem = "Cannot describe SCRAM credentials for the same user twice in a single request"
        raise ApiError(ErrorCode.DUPLICATE_RESOURCE, f"{problem}: {user}")
    config = await store.read(node_of(user))
    if not _has_credential(config):
        problem = "Attempt to describe a user credential that does not exist"
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"{problem}: {user}")
    return config


def _has_credential(config: Mapping[str, str]) -> bool:
    return any(mechanism in config for mechanism in MECHANISMS.values())


def _result(user: str, config: Mapping[str, str]) -> DescribeUserScramCredentialsResult:
    try:
        infos = [
            CredentialInfo(mechanism=number, iterations=iterations_of(config[mechanism]))
            for number, mechanism in MECHANISMS.items()
            if mechanism in config
        ]
    except ValueError:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=_UNEXPECTED
        )
    return DescribeUserScramCredentialsResult(user=user, error_message="", credential_infos=infos)


def error_response(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode
) -> DescribeUserScramCredentialsResponse:
    """The error, also for each user that is named, but without the name, as in Kafka."""
    return DescribeUserScramCredentialsResponse(
        error_code=code,
        error_message=None,
        results=[
            DescribeUserScramCredentialsResult(user="", error_code=code, error_message=None)
            for _ in request.users or ()
        ],
    )
