"""Large requests: decoded, handled and encoded in slices, so that other clients are served too.

    frame ── decode ──► request ── cut ──► chunks ── handle each ──► response ── encode ──► parts
             (slices)             (chunks)                 (slices)            (slices)

A large request whose decoding fits into one slice and that has few entries goes back to the
dispatcher and is handled like a small one: most large requests are records with little around them.

Requests of hundreds of thousands of entries occupy many times their size while they are processed,
so only a few of those are processed at the same time; the others wait.
"""

import asyncio
from typing import Any, Final

from broker.api.chunks import (
    ERROR_PATHS,
    UNANSWERED,
    Limit,
    Path,
    cut,
    exceeded_limit,
    join,
    large_path,
)
from broker.api.context import RequestContext, Services
from broker.api.duplicates import removing_duplicates
from broker.api.request_usage import usage_of
from broker.api.responses import (
    NOT_SERVED,
    count_errors,
    error_code,
    failed,
    not_served,
    record_usage,
    throttled,
)
from broker.api.rows import Row
from broker.api.slices import free, run_first_slice
from broker.api.table import TABLE
from broker.errors import ApiError, ErrorCode
from broker.net.connection import CloseConnection, Peer, ResponseParts
from broker.net.deferred import DeferredResponse, as_deferred
from broker.protocol.codec import Slices, decode_in_slices, encode_in_slices
from broker.protocol.compiler import SLICE_ELEMENTS
from broker.protocol.framing import set_size
from broker.protocol.headers import read_header_in_slices, start_response
from broker.protocol.schema import Request, Response
from broker.tasks import let_others_run, run_in_slices

LARGE_BYTES: Final = 32 * 1024
"""Requests above this size are treated here."""

_HUGE_ELEMENTS: Final = 300_000
_MAX_HUGE: Final = 2
"""The number of huge requests that are processed at the same time."""
_MAX_WAIT_S = 60.0
"""How long a huge request waits for its turn before its connection is closed."""

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
        try:
            next(decoding)
        except StopIteration as done:
            decoded = done.value  # it has few elements, because the decoder has not yielded
            return decoded
        is_done, decoded = run_first_slice(decoding)
        if not is_done:
            return as_deferred(self._decode_and_process(decoding))
        if isinstance(decoded, tuple):
            request = decoded[1]
            if large_path(request) is not None or exceeded_limit(request) is not None:
                return as_deferred(self._process(decoded))
        return decoded

    def _decode(self, frame: memoryview, peer: Peer) -> Slices[Decoded | ResponseParts]:
        header = yield from read_header_in_slices(frame)
        api_key, version, correlation_id, client_id, body = header
        row = TABLE.get(api_key, NOT_SERVED)
        lowest, highest = row.versions
        if not lowest <= version <= highest:
            return not_served(api_key, version, correlation_id)
        request, _ = yield from decode_in_slices(row.request, frame, body, version)
        context = RequestContext(version, correlation_id, client_id, peer, self._services, api_key)
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
            decoded = (await run_in_slices(decoding)).result
            return await self._process(decoded)
        finally:
            self._huge.release()

    async def _process(self, decoded: Decoded | ResponseParts) -> ResponseParts:
        if not isinstance(decoded, tuple):
            return decoded
        row, request, context = decoded
        try:
            response: Response | None
            await run_in_slices(removing_duplicates(request))
            if (path := large_path(request)) is not None:
                response = await _handle_chunks(row, request, context, path)
            elif (limit := exceeded_limit(request)) is not None:
                response = await _refuse(row, request, limit)
            else:
                response = await _handle(row, request, context)
            return await _encode(row, request, response, context)
        except Exception as error:  # noqa: BLE001  # the error boundary
            return failed(row, request, context, error)
        finally:
            await run_in_slices(free(request))


async def _handle(row: Row, request: Request[Any], context: RequestContext) -> Response | None:
    if (limit := exceeded_limit(request)) is not None:
        _close_if_unanswered(row, limit)
        raise ApiError(limit.code, _excess(limit))
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
    code: ErrorCode | None = None
    for chunk in cut(request, path):
        response: Response | None = None
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
        await let_others_run()
    return whole


async def _refuse(row: Row, request: Request[Any], limit: Limit) -> Response:
    """The error for a request above a limit, for all its entries if the API has a place for it."""
    _close_if_unanswered(row, limit)
    path = ERROR_PATHS.get(request.api_key)
    if path is None:
        return row.error_response(request, limit.code)
    chunks = cut(request, path)
    whole = row.error_response(next(chunks), limit.code)
    for chunk in chunks:
        join(whole, row.error_response(chunk, limit.code), path)
        await let_others_run()
    return whole


def _close_if_unanswered(row: Row, limit: Limit) -> None:
    if row.api_key in UNANSWERED:
        raise CloseConnection(f"{row.api_key.name}: {_excess(limit)}")


def _excess(limit: Limit) -> str:
    return f"more than {limit.at_most:,} elements in {'.'.join(limit.array)}"


async def _encode(
    row: Row, request: Request[Any], response: Response | None, context: RequestContext
) -> ResponseParts:
    delay_ms = record_usage(row, request, context, response)
    if response is None:
        return throttled(None, delay_ms)
    head = start_response(row.api_key, context.api_version, context.correlation_id)
    encoding = encode_in_slices(response, context.api_version, head)
    parts = (await run_in_slices(encoding)).result
    await run_in_slices(free(response))
    return throttled(set_size(parts), delay_ms)
