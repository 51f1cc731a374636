"""From a request frame to the handler of its API, and back to the parts of a response frame.

The second of three error boundaries (partition, request, connection): an exception of a handler is
logged once and becomes an error response in the form of its API. Bytes that cannot be decoded, and
APIs and versions that are not advertised, raise DecodeError, on which the connection is closed.
"""

import logging
from functools import partial
from typing import Any

from broker.api.context import RequestContext, Services
from broker.api.handlers import api_versions
from broker.api.request_usage import RequestUsage
from broker.api.rows import Kind, Row
from broker.api.table import TABLE
from broker.errors import ApiError, ErrorCode
from broker.net.connection import CloseConnection, Peer, ResponseParts, ThrottledResponse
from broker.net.deferred import DeferredResponse, as_deferred
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode_from, encode_into
from broker.protocol.errors import DecodeError
from broker.protocol.framing import set_size
from broker.protocol.headers import read_request_header, start_response
from broker.protocol.primitives import Part
from broker.protocol.schema import Request, Response
from broker.quota.client_quota_manager import Client
from broker.quota.quota_managers import QuotaManagers

logger = logging.getLogger(__name__)


class Dispatcher:
    """Handles frames; see `net.connection.RequestHandler`."""

    def __init__(self, services: Services, quotas: QuotaManagers | None = None) -> None:
        self._services = services
        self._quotas: QuotaManagers | None = None
        """None until a quota is set, so that requests do not look for quotas."""
        if quotas is not None:
            quotas.on_enabled = partial(self._enable_quotas, quotas)
            if quotas.is_enabled:
                self._quotas = quotas

    def _enable_quotas(self, quotas: QuotaManagers) -> None:
        self._quotas = quotas

    def __call__(
        self, frame: memoryview, peer: Peer
    ) -> ResponseParts | DeferredResponse[ResponseParts]:
        """The response, or a DeferredResponse if the handler has to wait for something."""
        api_key, version, correlation_id, client_id, body = read_request_header(frame)
        row = TABLE.get(api_key)
        if row is None:
            raise DecodeError(f"{ApiKey(api_key).name} is not served")
        lowest, highest = row.versions
        if not lowest <= version <= highest:
            return _unsupported_version(row, version, correlation_id)
        # Bytes after the message are ignored, as in Kafka.
        request, _ = decode_from(row.request, frame, body, version)
        context = RequestContext(version, correlation_id, client_id, peer, self._services, api_key)
        if self._quotas is not None:
            client = Client(peer.principal.name, client_id or "")
            now_ms = self._services.clock.now_ms
            context.usage = RequestUsage(self._quotas, client, len(frame), now_ms)
        action_queue = self._services.purgatory.action_queue
        action_queue.hold()
        try:
            outcome = row.handle(request, context)
            action_queue.try_complete_actions()
            kind = row.kind
            if kind is Kind.IMMEDIATE or (
                kind is Kind.EITHER and (outcome is None or isinstance(outcome, Response))
            ):
                if context.usage is None:
                    return _encode(api_key, outcome, version, correlation_id)
                return _encode_throttled(row, request, context, outcome)
        except Exception as error:  # noqa: BLE001  # the error boundary
            action_queue.try_complete_actions()
            return _failed(row, request, context, error)
        return _deferred(row, request, context, as_deferred(outcome))


def _deferred(
    row: Row,
    request: Request[Any],
    context: RequestContext,
    pending: DeferredResponse[Response | None],
) -> DeferredResponse[ResponseParts]:
    if context.usage is not None:
        context.usage.pause()
    return DeferredResponse(pending.completion, partial(_finish, row, request, context, pending))


def _finish(
    row: Row,
    request: Request[Any],
    context: RequestContext,
    pending: DeferredResponse[Response | None],
) -> ResponseParts | DeferredResponse[ResponseParts]:
    if context.usage is not None:
        context.usage.resume()
    try:
        response = pending.respond()
        if isinstance(response, DeferredResponse):
            return _deferred(row, request, context, response)
        if context.usage is not None:
            return _encode_throttled(row, request, context, response)
        return _encode(row.api_key, response, context.api_version, context.correlation_id)
    except Exception as error:  # noqa: BLE001  # the error boundary
        return _failed(row, request, context, error)


def _unsupported_version(row: Row, version: int, correlation_id: int) -> ResponseParts:
    """ApiVersions responds in version 0, which all clients can read; other APIs raise."""
    if row.api_key != ApiKey.API_VERSIONS:
        raise DecodeError(
            f"{row.api_key.name} v{version} is not served, "
            f"versions {row.versions[0]} to {row.versions[1]} are"
        )
    return _encode(row.api_key, api_versions.unsupported_version(), 0, correlation_id)


def _failed(
    row: Row, request: Request[Any], context: RequestContext, error: Exception
) -> ResponseParts:
    """The response to a request whose handler failed, or whose response cannot be encoded."""
    if isinstance(error, CloseConnection):
        raise error
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    if isinstance(error, ApiError):
        code = error.code
    else:
        logger.error(
            "handler failed api=%s version=%s correlation_id=%s client_id=%s peer=%s",
            row.api_key.name,
            context.api_version,
            context.correlation_id,
            context.client_id,
            context.peer,
            exc_info=error,
        )
    response = row.error_response(request, code)
    if context.usage is not None:
        return _encode_throttled(row, request, context, response)
    return _encode(row.api_key, response, context.api_version, context.correlation_id)


def _encode_throttled(
    row: Row, request: Request[Any], context: RequestContext, response: Response | None
) -> ResponseParts:
    """Encode a response after recording what the request has used of its client's quotas."""
    assert context.usage is not None  # noqa: S101 - the caller has checked it
    delay_ms = context.usage.record(row, request, response)
    parts = _encode(row.api_key, response, context.api_version, context.correlation_id)
    return ThrottledResponse(parts or (), delay_ms / 1000) if delay_ms else parts


def _encode(
    api_key: int, response: Response | None, version: int, correlation_id: int
) -> list[Part] | None:
    if response is None:
        return None
    head = start_response(api_key, version, correlation_id)
    return set_size(encode_into(response, version, head))
