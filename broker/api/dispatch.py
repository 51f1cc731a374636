"""From a frame to the handler of its API and back to the parts of a response frame.

The middle one of three fences: what a handler raises beyond its own ApiErrors is logged once and
answered in that API's form. Bytes that cannot be decoded go on as DecodeError to the connection,
which closes; so does a request for an API or a version that was never advertised, as in Kafka.
"""

import logging
from functools import partial
from typing import Any

from broker.api import api_versions
from broker.api.context import RequestContext, Services
from broker.api.table import TABLE, Row
from broker.errors import ApiError, ErrorCode
from broker.net.connection import Answer, CloseConnection, Peer
from broker.net.later import Later, as_later
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode_from, encode_into
from broker.protocol.errors import DecodeError
from broker.protocol.framing import set_size
from broker.protocol.headers import read_request_header, start_response
from broker.protocol.primitives import Part
from broker.protocol.schema import Request, Response

logger = logging.getLogger(__name__)


class Dispatcher:
    """Answers frames; see `net.connection.Answerer`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def __call__(self, frame: memoryview, peer: Peer) -> Answer | Later[Answer]:
        """Answer at once if the handler does; else say what to wait for."""
        api_key, version, correlation_id, client_id, body = read_request_header(frame)
        row = TABLE.get(api_key)
        if row is None:
            raise DecodeError(f"{ApiKey(api_key).name} is not served")
        lowest, highest = row.versions
        if not lowest <= version <= highest:
            return _unsupported_version(row, version, correlation_id)
        # What follows the message is ignored, as Kafka does.
        request, _ = decode_from(row.request, frame, body, version)
        context = RequestContext(version, correlation_id, client_id, peer, self._services)
        purgatory = self._services.purgatory
        purgatory.collect()
        try:
            response = row.handle(request, context)
            purgatory.complete()
            if response is None or isinstance(response, Response):
                return _encode(api_key, response, version, correlation_id)
        except Exception as error:  # noqa: BLE001  # the fence
            purgatory.complete()
            return _broken(row, request, context, error)
        return _later(row, request, context, as_later(response))


def _later(
    row: Row, request: Request[Any], context: RequestContext, pending: Later[Response | None]
) -> Later[Answer]:
    return Later(pending.done, partial(_finish, row, request, context, pending))


def _finish(
    row: Row, request: Request[Any], context: RequestContext, pending: Later[Response | None]
) -> Answer | Later[Answer]:
    try:
        response = pending.answer()
        if isinstance(response, Later):
            return _later(row, request, context, response)
        return _encode(row.api_key, response, context.api_version, context.correlation_id)
    except Exception as error:  # noqa: BLE001  # the fence
        return _broken(row, request, context, error)


def _unsupported_version(row: Row, version: int, correlation_id: int) -> Answer:
    """ApiVersions answers in version 0, which every client reads; others end the connection."""
    if row.api_key != ApiKey.API_VERSIONS:
        raise DecodeError(
            f"{row.api_key.name} v{version} is not served, "
            f"versions {row.versions[0]} to {row.versions[1]} are"
        )
    return _encode(row.api_key, api_versions.unsupported_version(), 0, correlation_id)


def _broken(row: Row, request: Request[Any], context: RequestContext, error: Exception) -> Answer:
    """The answer to a request whose handler failed as a whole, or made what cannot be encoded."""
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
    return _encode(row.api_key, response, context.api_version, context.correlation_id)


def _encode(
    api_key: int, response: Response | None, version: int, correlation_id: int
) -> list[Part] | None:
    if response is None:
        return None
    head = start_response(api_key, version, correlation_id)
    return set_size(encode_into(response, version, head))
