"""The parts of response frames, also for requests that failed or are not served."""

import logging
from typing import Any, Final

from broker.api.context import RequestContext
from broker.api.error_codes import error_codes
from broker.api.handlers import api_versions
from broker.api.rows import Row
from broker.api.table import TABLE
from broker.errors import ApiError, ErrorCode
from broker.metrics.request_metrics import RequestMetrics
from broker.net.connection import CloseConnection, ResponseParts, ThrottledResponse
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import encode_into
from broker.protocol.errors import DecodeError
from broker.protocol.framing import set_size
from broker.protocol.headers import start_response
from broker.protocol.schema import Request, Response

logger = logging.getLogger(__name__)

NOT_SERVED: Final = TABLE[ApiKey.API_VERSIONS]._replace(versions=(1, 0))
"""The row of an API that is not in the table: no version is served."""


def encode_response(
    api_key: int, response: Response | None, version: int, correlation_id: int
) -> ResponseParts:
    """The frame of a response; None if there is no response."""
    if response is None:
        return None
    head = start_response(api_key, version, correlation_id)
    return set_size(encode_into(response, version, head))


def encode_throttled(
    row: Row, request: Request[Any], context: RequestContext, response: Response | None
) -> ResponseParts:
    """Encode a response after recording what the request has used of its client's quotas."""
    delay_ms = record_usage(row, request, context, response)
    parts = encode_response(row.api_key, response, context.api_version, context.correlation_id)
    return throttled(parts, delay_ms)


def record_usage(
    row: Row, request: Request[Any], context: RequestContext, response: Response | None
) -> int:
    """Record the request's usage; returns how long to mute its connection, in milliseconds."""
    return 0 if context.usage is None else context.usage.record(row, request, response)


def throttled(parts: ResponseParts, delay_ms: int) -> ResponseParts:
    """The response, after which the connection is muted if there is a delay."""
    return ThrottledResponse(parts or (), delay_ms / 1000) if delay_ms else parts


def count_errors(api_key: int, response: Response | None, metrics: RequestMetrics) -> None:
    """Count the error codes in a response."""
    if response is not None:
        for code in error_codes(response):
            errors = metrics.of(api_key).errors
            errors[code] = errors.get(code, 0) + 1


def not_served(api_key: int, version: int, correlation_id: int) -> ResponseParts:
    """The response to an API or version that is not in the table.

    ApiVersions responds in version 0, which all clients can read; other APIs raise.
    """
    row = TABLE.get(api_key)
    if row is None:
        raise DecodeError(f"{ApiKey(api_key).name} is not served")
    if row.api_key != ApiKey.API_VERSIONS:
        raise DecodeError(
            f"{row.api_key.name} v{version} is not served, "
            f"versions {row.versions[0]} to {row.versions[1]} are"
        )
    return encode_response(row.api_key, api_versions.unsupported_version(), 0, correlation_id)


def failed(
    row: Row, request: Request[Any], context: RequestContext, error: Exception
) -> ResponseParts:
    """The response to a request whose handler failed, or whose response cannot be encoded."""
    response = row.error_response(request, error_code(row, context, error))
    if context.services.request_metrics is not None:
        count_errors(row.api_key, response, context.services.request_metrics)
    if context.usage is not None:
        return encode_throttled(row, request, context, response)
    return encode_response(row.api_key, response, context.api_version, context.correlation_id)


def error_code(row: Row, context: RequestContext, error: Exception) -> ErrorCode:
    """The code for an exception of a handler. An exception that is a bug is logged."""
    if isinstance(error, CloseConnection):
        raise error
    if isinstance(error, ApiError):
        return error.code
    logger.error(
        "handler failed api=%s version=%s correlation_id=%s client_id=%s peer=%s",
        row.api_key.name,
        context.api_version,
        context.correlation_id,
        context.client_id,
        context.peer,
        exc_info=error,
    )
    return ErrorCode.UNKNOWN_SERVER_ERROR
