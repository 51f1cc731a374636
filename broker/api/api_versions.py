"""Answers ApiVersions: the first thing a client asks.

A version newer than ours still gets an answer (see `dispatch`): UNSUPPORTED_VERSION in version 0,
with the versions of ApiVersions itself, so that the client can try again with one we have.

Deliberately missing: finalized features (a ZooKeeper cluster of Kafka 3.9 has none), and
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
"""What a client's software name and version may look like (KIP-511)."""

_FEATURES_EPOCH: Final = 0
"""How often the finalized features have changed since the cluster was made."""

_advertised: list[ApiVersion] = []


def advertise(apis: Iterable[tuple[int, int, int]]) -> None:
    """Set the answer: (api key, lowest, highest version) of all that is served."""
    _advertised[:] = [
        ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, lowest, highest in sorted(apis)
    ]


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """The whole table; INVALID_REQUEST for a client that introduces itself with nonsense."""
    introduced = (request.client_software_name, request.client_software_version)
    if context.api_version >= 3 and not all(_SOFTWARE.fullmatch(name) for name in introduced):
        return error_response(request, ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=_advertised, finalized_features_epoch=_FEATURES_EPOCH)


def unsupported_version() -> ApiVersionsResponse:
    """The answer to a version we do not have; to be sent in version 0."""
    own = [api for api in _advertised if api.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def error_response(request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
    """Nothing but the error."""
    return ApiVersionsResponse(error_code=code)
