"""Counts requests and measures their times, around the dispatcher; used if metrics are exposed.

Kafka's phases: queue (from the event loop's wake-up to the handler), local (in the handler), remote
(waiting for other brokers or for more bytes), send (until the socket has the response), total.
Every request is counted. `RequestMetrics` decides which are measured: measuring each costs 4 % of
the CPU time of a produce request.
"""

from collections.abc import Callable
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812
from time import perf_counter
from typing import Final

from broker.api.dispatch import Dispatcher
from broker.metrics.request_metrics import ApiMetrics, RequestMetrics
from broker.net.connection import Peer, ResponseParts, TrackedResponse
from broker.net.deferred import DeferredResponse
from broker.net.poller import Poller

Measured = Callable[[memoryview, Peer], ResponseParts | DeferredResponse[ResponseParts]]
"""Processes one request frame."""

_KEY_AND_VERSION: Final = Struct(">i").unpack_from


def measured(dispatcher: Dispatcher, metrics: RequestMetrics, poller: Poller) -> Measured:
    """A dispatcher with a stopwatch; see `net.connection.RequestHandler`.

    A function with closures, not a class: it runs for every request, and this is half the cost.
    """
    dispatch = dispatcher.__call__
    counts = metrics.counts
    count_of = counts.get

    def handle(frame: memoryview, peer: Peer) -> ResponseParts | DeferredResponse[ResponseParts]:
        """Process a request; one that closes its connection is not counted."""
        try:
            (key,) = _KEY_AND_VERSION(frame)
        except StructError:  # too short: the dispatcher raises
            return dispatch(frame, peer)
        count = count_of(key, 0)
        if count & metrics.sampling_mask:
            response = dispatch(frame, peer)
            counts[key] = count + 1
            return response
        started_s = perf_counter()
        queue_s = started_s - poller.woken_s
        response = dispatch(frame, peer)
        ended_s = perf_counter()
        counts[key] = count + 1
        timing = _Timing(metrics.of(key >> 16), queue_s, started_s, ended_s - started_s)
        metrics.measured(ended_s)
        if isinstance(response, DeferredResponse):
            return timing.deferred(response)
        return timing.responded(response, ended_s)

    return handle


class _Timing:
    """The times of one request. Recorded all at once, when its response has been sent."""

    __slots__ = ("_local_s", "_metrics", "_queue_s", "_started_s")

    def __init__(
        self, metrics: ApiMetrics, queue_s: float, started_s: float, local_s: float
    ) -> None:
        self._metrics = metrics
        self._queue_s = queue_s
        self._started_s = started_s
        self._local_s = local_s

    def deferred(self, pending: DeferredResponse[ResponseParts]) -> DeferredResponse[ResponseParts]:
        """A response that is there later."""
        return DeferredResponse(pending.completion, partial(self._finish, pending))

    def _finish(
        self, pending: DeferredResponse[ResponseParts]
    ) -> ResponseParts | DeferredResponse[ResponseParts]:
        response = pending.respond()
        if isinstance(response, DeferredResponse):
            return self.deferred(response)
        return self.responded(response, perf_counter())

    def responded(self, parts: ResponseParts, ended_s: float) -> ResponseParts:
        """The response, which reports when it has been sent; nothing is sent for None."""
        if parts is None:
            self._record(ended_s, ended_s)
            return None
        tracked = parts if isinstance(parts, TrackedResponse) else TrackedResponse(parts)
        tracked.on_sent = partial(self._on_sent, ended_s)
        return tracked

    def _on_sent(self, ended_s: float) -> None:
        self._record(ended_s, perf_counter())

    def _record(self, ended_s: float, sent_s: float) -> None:
        metrics = self._metrics
        metrics.queue.record(self._queue_s)
        metrics.local.record(self._local_s)
        metrics.remote.record(ended_s - self._started_s - self._local_s)
        metrics.send.record(sent_s - ended_s)
        metrics.total.record(sent_s - self._started_s + self._queue_s)
