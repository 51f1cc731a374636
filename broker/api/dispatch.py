"""From a request frame to the handler of its API, and back to the parts of a response frame.

The second of three error boundaries (partition, request, connection): an exception of a handler is
logged once and becomes an error response in the form of its API. Bytes that cannot be decoded, and
APIs and versions that are not advertised, raise DecodeError, on which the connection is closed.
"""

from functools import partial
from typing import Any, Final

from broker.api.context import RequestContext, Services
from broker.api.error_codes import HAS_ERRORS
from broker.api.large_requests import LARGE_BYTES, LargeRequests
from broker.api.request_usage import usage_of
from broker.api.responses import (
    NOT_SERVED,
    count_errors,
    encode_response,
    encode_throttled,
    failed,
    not_served,
)
from broker.api.rows import Kind, Row
from broker.api.table import TABLE
from broker.net.connection import Peer, ResponseParts
from broker.net.deferred import DeferredResponse, as_deferred
from broker.protocol.codec import decode_from
from broker.protocol.headers import read_request_header
from broker.protocol.schema import Request, Response
from broker.quota.quota_managers import QuotaManagers

# A lookup in an enum takes as long as several calls.
_IMMEDIATE: Final = Kind.IMMEDIATE
_EITHER: Final = Kind.EITHER


class Dispatcher:
    """Handles frames; see `net.connection.RequestHandler`."""

    def __init__(self, services: Services, quotas: QuotaManagers | None = None) -> None:
        self._services = services
        if quotas is not None:
            quotas.on_enabled = partial(self._enable_quotas, quotas)
            if quotas.is_enabled:
                self._enable_quotas(quotas)
        self._large_requests = LargeRequests(services)

    def _enable_quotas(self, quotas: QuotaManagers) -> None:
        self._services.client_quotas = quotas

    def __call__(
        self, frame: memoryview, peer: Peer
    ) -> ResponseParts | DeferredResponse[ResponseParts]:
        """The response, or a DeferredResponse if the handler has to wait for something."""
        services = self._services
        if len(frame) > LARGE_BYTES:
            large = self._large_requests.begin(frame, peer)
            if not isinstance(large, tuple):
                return large
            row, request, context = large
            version, correlation_id = context.api_version, context.correlation_id
        else:
            api_key, version, correlation_id, client_id, body = read_request_header(frame)
            row = TABLE.get(api_key, NOT_SERVED)
            lowest, highest = row.versions
            if not lowest <= version <= highest:
                return not_served(api_key, version, correlation_id)
            # Bytes after the message are ignored, as in Kafka.
            request, _ = decode_from(row.request, frame, body, version)
            context = RequestContext(version, correlation_id, client_id, peer, services, api_key)
            if services.client_quotas is not None:
                context.usage = usage_of(context, len(frame))
        action_queue = services.purgatory.action_queue
        action_queue.hold()
        try:
            outcome = row.handle(request, context)
            action_queue.try_complete_actions()
            kind = row.kind
            if kind is _IMMEDIATE or (
                kind is _EITHER and (outcome is None or isinstance(outcome, Response))
            ):
                metrics = services.request_metrics
                if (
                    metrics is not None
                    and outcome is not None
                    and HAS_ERRORS[type(outcome)](outcome)
                ):
                    count_errors(row.api_key, outcome, metrics)
                if context.usage is not None:
                    return encode_throttled(row, request, context, outcome)
                return encode_response(row.api_key, outcome, version, correlation_id)
        except Exception as error:  # noqa: BLE001  # the error boundary
            action_queue.try_complete_actions()
            return failed(row, request, context, error)
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
        if context.services.request_metrics is not None:
            count_errors(row.api_key, response, context.services.request_metrics)
        if context.usage is not None:
            return encode_throttled(row, request, context, response)
        return encode_response(row.api_key, response, context.api_version, context.correlation_id)
    except Exception as error:  # noqa: BLE001  # the error boundary
        return failed(row, request, context, error)
