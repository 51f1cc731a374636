"""Large requests: decoded, handled and encoded in slices, so that other clients are served too.

    frame ── decode ──► request ── cut ──► chunks ── handle each ──► response ── encode ──► parts
             (slices)             (chunks)                 (slices)            (slices)

A large request whose decoding fits into one slice and that has few entries goes back to the
dispatcher and is handled like a small one: most large requests are records with little around them.

Requests of hundreds of thousands of entries occupy many times their size while they are processed,
so only a few of those are processed at the same time; the others wait.
"""

import asyncio
import time
from typing import Any, Final

from broker.api.chunks import Path, cut, join, large_path
from broker.api.context import RequestContext, Services
from broker.api.request_usage import usage_of
from broker.api.responses import (
    count_errors,
    error_code,
    failed,
    not_served,
    record_usage,
    throttled,
)
from broker.api.rows import Row
from broker.api.slices import SLICE_S, free, run_first_slice, run_in_slices
from broker.api.table import TABLE
from broker.net.connection import CloseConnection, Peer, ResponseParts
from broker.net.deferred import DeferredResponse, as_deferred
from broker.protocol.codec import Slices, decode_in_slices, encode_in_slices
from broker.protocol.compiler import SLICE_ELEMENTS
from broker.protocol.framing import set_size
from broker.protocol.headers import decode_header_in_slices, start_response
from broker.protocol.schema import Request, Response

LARGE_BYTES: Final = 16 * 1024
"""Requests above this size are treated here."""

_HUGE_ELEMENTS: Final = 300_000
_MAX_HUGE: Final = 2
"""At most this many requests with more elements than that are processed at the same time."""
_MAX_WAIT_S = 60.0
"""The connection of a huge request that could not be processed for so long is closed."""

Decoded = tuple[Row, Request[Any], RequestContext]


class LargeRequests:
    """Processes large requests; one per broker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._huge = asyncio.Semaphore(_MAX_HUGE)

    def begin(
        self, frame: memoryview, peer: Peer
    ) -> Decoded | ResponseParts | DeferredResponse[ResponseParts]:
        """The decoded request if it can be handled at once, otherwise its response, deferred."""
        decoding = self._decode(frame, peer)
        decoded: Decoded | ResponseParts
        is_done, decoded = run_first_slice(decoding)
        if not is_done:
            return as_deferred(self._decode_and_process(decoding))
        if isinstance(decoded, tuple) and large_path(decoded[1]) is not None:
            return as_deferred(self._process(decoded))
        return decoded

    def _decode(self, frame: memoryview, peer: Peer) -> Slices[Decoded | ResponseParts]:
        header, body = yield from decode_header_in_slices(frame)
        api_key, version = header.request_api_key, header.request_api_version
        correlation_id = header.correlation_id
        row = TABLE.get(api_key)
        if row is None or not row.versions[0] <= version <= row.versions[1]:
            return not_served(api_key, version, correlation_id)
        request, _ = yield from decode_in_slices(row.request, frame, body, version)
        context = RequestContext(
            version, correlation_id, header.client_id, peer, self._services, api_key
        )
        context.usage = usage_of(context, len(frame))
        return row, request, context

    async def _decode_and_process(self, decoding: Slices[Decoded | ResponseParts]) -> ResponseParts:
        limit = _HUGE_ELEMENTS // SLICE_ELEMENTS
        is_done, decoded = await run_in_slices(decoding, limit)
        if is_done:
            return await self._process(decoded)
        try:
            await asyncio.wait_for(self._huge.acquire(), _MAX_WAIT_S)
        except TimeoutError:
            raise CloseConnection("too many huge requests at the same time") from None
        try:
            _, decoded = await run_in_slices(decoding)
            return await self._process(decoded)
        finally:
            self._huge.release()

    async def _process(self, decoded: Decoded | ResponseParts) -> ResponseParts:
        if not isinstance(decoded, tuple):
            return decoded
        row, request, context = decoded
        try:
            path = large_path(request)
            if path is None:
                response = await _handle(row, request, context)
            else:
                response = await _handle_chunks(row, request, context, path)
            return await _encode(row, request, response, context)
        except Exception as error:  # noqa: BLE001  # the error boundary
            return failed(row, request, context, error)
        finally:
            await run_in_slices(free(request))


async def _handle(row: Row, request: Request[Any], context: RequestContext) -> Response | None:
    action_queue = context.services.purgatory.action_queue
    action_queue.hold()
    try:
        outcome = row.handle(request, context)
    finally:
        action_queue.try_complete_actions()
    response: Response | None = outcome
    if outcome is not None and not isinstance(outcome, Response):
        if context.usage is not None:
            context.usage.pause()
        response = await outcome
        if context.usage is not None:
            context.usage.resume()
    if context.services.request_metrics is not None:
        count_errors(row.api_key, response, context.services.request_metrics)
    return response


async def _handle_chunks(
    row: Row, request: Request[Any], context: RequestContext, path: Path
) -> Response | None:
    """The joined responses to all chunks; after an exception, its error for the rest of them."""
    whole: Response | None = None
    code = None
    deadline = time.monotonic() + SLICE_S
    for chunk in cut(request, path):
        response: Response | None
        if code is None:
            try:
                response = await _handle(row, chunk, context)
            except Exception as error:  # noqa: BLE001  # the error boundary
                code = error_code(row, context, error)
        if code is not None:
            response = row.error_response(chunk, code)
        if whole is None:
            whole = response
        elif response is not None:
            join(whole, response, path)
        if time.monotonic() >= deadline:
            await asyncio.sleep(0)
            deadline = time.monotonic() + SLICE_S
    return whole


async def _encode(
    row: Row, request: Request[Any], response: Response | None, context: RequestContext
) -> ResponseParts:
    delay_ms = record_usage(row, request, context, response)
    if response is None:
        return throttled(None, delay_ms)
    head = start_response(row.api_key, context.api_version, context.correlation_id)
    encoding = encode_in_slices(response, context.api_version, head)
    _, parts = await run_in_slices(encoding)
    await run_in_slices(free(response))
    return throttled(set_size(parts), delay_ms)
