"""Requests per API: how many, with which errors, and how long they took in which phase.

The phases are Kafka's. Of a request that gets its response at once only the time in the handler is
recorded, because its local and its total time are the same and it has no remote time.
"""

from collections.abc import Collection

from broker.metrics.histogram import Histogram

Address = tuple[str, int, str]
"""Host, port and listener of a client's connection."""


class ApiMetrics:
    """Counters of one API.

    Field `requests`: by version. Field `errors`: responses by error code; a response with several
    codes counts once for each, as in Kafka.
    """

    __slots__ = ("errors", "immediate", "local", "queue", "remote", "requests", "total")

    def __init__(self) -> None:
        self.requests: dict[int, int] = {}
        self.errors: dict[int, int] = {}
        self.queue = Histogram()
        """From the event loop's wake-up to the handler: the wait behind other requests."""
        self.immediate = Histogram()
        """Local and total time of requests that were answered at once."""
        self.local = Histogram()
        """Time in the handler of requests that had to wait."""
        self.remote = Histogram()
        """The wait for other brokers, for more bytes or for the metadata store."""
        self.total = Histogram()
        """Local and remote time of requests that had to wait."""

    def settle(self) -> None:
        """Sort the recorded times into buckets."""
        for histogram in self.histograms():
            histogram.settle()

    def histograms(self) -> tuple[Histogram, ...]:
        """All of them."""
        return self.queue, self.immediate, self.local, self.remote, self.total


class RequestMetrics:
    """Counters of all APIs that were requested so far."""

    def __init__(self) -> None:
        self._apis: dict[int, ApiMetrics] = {}
        self.software: dict[Address, tuple[str, str]] = {}
        """Name and version of the client software on a connection, from its ApiVersions request.
        Entries of closed connections are removed by `forget_closed`."""

    def forget_closed(self, is_open: Collection[Address]) -> None:
        """Forget the software of all other connections; in the event loop."""
        self.software = {one: name for one, name in self.software.items() if one in is_open}

    def of(self, api_key: int) -> ApiMetrics:
        """The counters of an API."""
        found = self._apis.get(api_key)
        if found is None:
            found = self._apis[api_key] = ApiMetrics()
        return found

    def by_api(self) -> dict[int, ApiMetrics]:
        """A copy of the table by API key, for other threads."""
        return self._apis.copy()

    def rotate(self) -> None:
        """Begin a new interval of the quantiles; once per minute, in the event loop."""
        for api in self._apis.values():
            for histogram in api.histograms():
                histogram.rotate()
