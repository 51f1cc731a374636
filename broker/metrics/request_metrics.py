"""Requests per API: how many, with which errors, and how long they took in which phase.

Requests and errors are counted exactly. Times are taken from every request while there are few,
and from every second to 64th request of an API under load: Kafka's histograms are samples, too.
The phases are Kafka's.
"""

from collections.abc import Collection
from time import perf_counter
from typing import Final

from broker.metrics.histogram import Histogram

Address = tuple[str, int, str]
"""Host, port and listener of a client's connection."""

_SETTLE_AFTER: Final = 256
"""After this many measured requests their times are sorted into buckets."""
_BUSY_S, _QUIET_S = 1.0, 4.0
"""If they came within this time, fewer requests are measured from then on, or more."""
_MAX_SAMPLING_MASK: Final = 63


class ApiMetrics:
    """Error codes and times of one API.

    Field `errors`: responses by error code; a response with several codes counts once for each, as
    in Kafka. Invariant: a measured request is in every histogram once it has been sent.
    """

    __slots__ = ("errors", "local", "queue", "remote", "send", "total")

    def __init__(self) -> None:
        self.errors: dict[int, int] = {}
        self.queue = Histogram()
        """From the event loop's wake-up to the handler: the wait behind other requests."""
        self.local = Histogram()
        """Time in the handler."""
        self.remote = Histogram()
        """The wait for other brokers, for more bytes or for the metadata store."""
        self.send = Histogram()
        """From the response to its last byte in the socket, which a slow client delays."""
        self.total = Histogram()
        """All of them together."""

    def histograms(self) -> tuple[Histogram, ...]:
        """All of them."""
        return self.queue, self.local, self.remote, self.send, self.total


class RequestMetrics:
    """Counters of all APIs that were requested so far.

    Field `counts`: requests by API key and version, as the first four bytes of a request have them:
    `api_key << 16 | version`.
    Field `sampling_mask`: a request is measured if the number of its predecessors has none of these
    bits. Invariant: 2^n - 1.
    """

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.sampling_mask = 0
        self._apis: dict[int, ApiMetrics] = {}
        self._num_measured = 0
        self._measured_since_s = perf_counter()
        self.software: dict[Address, tuple[str, str]] = {}
        """Name and version of the client software on a connection, from its ApiVersions request.
        Entries of closed connections are removed by `forget_closed`."""

    def forget_closed(self, is_open: Collection[Address]) -> None:
        """Forget the software of all other connections; in the event loop."""
        self.software = {one: name for one, name in self.software.items() if one in is_open}

    def of(self, api_key: int) -> ApiMetrics:
        """Errors and times of an API."""
        found = self._apis.get(api_key)
        if found is None:
            found = self._apis[api_key] = ApiMetrics()
        return found

    def by_api(self) -> dict[int, ApiMetrics]:
        """A copy of the table by API key, for other threads."""
        return self._apis.copy()

    def requests(self) -> dict[int, dict[int, int]]:
        """How many requests there were, by API key and version; for other threads."""
        found: dict[int, dict[int, int]] = {}
        for key, count in self.counts.copy().items():
            found.setdefault(key >> 16, {})[key & 0xFFFF] = count
        return found

    def measured(self, now_s: float) -> None:
        """Call once per measured request: bounds the cost of measuring, and its memory."""
        self._num_measured += 1
        if self._num_measured < _SETTLE_AFTER:
            return
        elapsed_s = now_s - self._measured_since_s
        if elapsed_s < _BUSY_S:
            self.sampling_mask = min(self.sampling_mask << 1 | 1, _MAX_SAMPLING_MASK)
        elif elapsed_s > _QUIET_S:
            self.sampling_mask >>= 1
        self._num_measured, self._measured_since_s = 0, now_s
        for api in self._apis.values():
            for histogram in api.histograms():
                histogram.settle()

    def rotate(self) -> None:
        """Begin a new interval of the quantiles; once per minute, in the event loop."""
        self.sampling_mask = 0
        for api in self._apis.values():
            for histogram in api.histograms():
                histogram.rotate()
