"""Handle ApiVersions, the first request of most clients.

A version newer than ours still gets a response (see `dispatch`): UNSUPPORTED_VERSION in version 0,
with the versions of ApiVersions itself, so that the client can try again with one of them.

Versions:
    v1 throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 flexible; name and version of the client (KIP-511), features (KIP-584)
    v4 features whose lowest version is 0

Deliberately missing: finalized features, which a ZooKeeper cluster of Kafka 3.9 does not have, and
zk_migration_ready, which only a migration to KRaft sets.
"""

import re
from collections.abc import Iterable
from typing import Final

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Valid names and versions of client software (KIP-511)."""

_FEATURES_EPOCH: Final = 0
"""Counts changes of the finalized features, of which a ZooKeeper cluster has none."""

_advertised: list[ApiVersion] = []


def advertise(apis: Iterable[tuple[int, int, int]]) -> None:
    """Set the response: (api key, lowest, highest version) of all APIs that are served."""
    _advertised[:] = [
        ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, lowest, highest in sorted(apis)
    ]


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """List all APIs; INVALID_REQUEST if name or version of the client software are invalid."""
    introduced = (request.client_software_name, request.client_software_version)
    if context.api_version >= 3 and not all(_SOFTWARE.fullmatch(name) for name in introduced):
        return error_response(request, ErrorCode.INVALID_REQUEST)
    metrics = context.services.request_metrics
    if metrics is not None:
        # Kafka's word for clients before version 3, which do not say what they are.
        known = introduced if context.api_version >= 3 else ("unknown", "unknown")
        metrics.software[context.peer[:3]] = known
    return ApiVersionsResponse(api_keys=_advertised, finalized_features_epoch=_FEATURES_EPOCH)


def unsupported_version() -> ApiVersionsResponse:
    """The response to an unsupported version; to be encoded in version 0."""
    own = [api for api in _advertised if api.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def error_response(request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
    """Only the error."""
    return ApiVersionsResponse(error_code=code)
