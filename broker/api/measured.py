"""Counts requests and measures their times, around the dispatcher; used if metrics are exposed.

Kafka's phases: queue (from the event loop's wake-up to the handler), local (in the handler), remote
(waiting for other brokers or for more bytes), total (local and remote).
"""

from functools import partial
from struct import Struct
from time import perf_counter
from typing import Final

from broker.api.dispatch import Dispatcher
from broker.metrics.request_metrics import ApiMetrics, RequestMetrics
from broker.net.connection import Peer, ResponseParts
from broker.net.deferred import DeferredResponse
from broker.net.poller import Poller

_SETTLE_MASK: Final = 1023
"""After every 1,024 requests their times are sorted into buckets."""
_KEY_AND_VERSION: Final = Struct(">hh").unpack_from


class MeasuredDispatcher:
    """A dispatcher that measures itself; see `net.connection.RequestHandler`."""

    def __init__(self, dispatch: Dispatcher, metrics: RequestMetrics, poller: Poller) -> None:
        self._dispatch = dispatch
        self._metrics = metrics
        self._poller = poller

    def __call__(
        self, frame: memoryview, peer: Peer
    ) -> ResponseParts | DeferredResponse[ResponseParts]:
        """Process a request; one that closes its connection is not counted."""
        started_s = perf_counter()
        response = self._dispatch(frame, peer)
        local_s = perf_counter() - started_s
        api_key, version = _KEY_AND_VERSION(frame)
        metrics = self._metrics.of(api_key)
        requests = metrics.requests
        requests[version] = count = requests.get(version, 0) + 1
        metrics.queue.record(started_s - self._poller.woken_s)
        if not count & _SETTLE_MASK:
            metrics.settle()
        if isinstance(response, DeferredResponse):
            metrics.local.record(local_s)
            return self._deferred(response, metrics, started_s, local_s)
        metrics.immediate.record(local_s)
        return response

    def _deferred(
        self,
        pending: DeferredResponse[ResponseParts],
        metrics: ApiMetrics,
        started_s: float,
        local_s: float,
    ) -> DeferredResponse[ResponseParts]:
        return DeferredResponse(
            pending.completion, partial(self._finish, pending, metrics, started_s, local_s)
        )

    def _finish(
        self,
        pending: DeferredResponse[ResponseParts],
        metrics: ApiMetrics,
        started_s: float,
        local_s: float,
    ) -> ResponseParts | DeferredResponse[ResponseParts]:
        response = pending.respond()
        if isinstance(response, DeferredResponse):
            return self._deferred(response, metrics, started_s, local_s)
        total_s = perf_counter() - started_s
        metrics.remote.record(total_s - local_s)
        metrics.total.record(total_s)
        return response
