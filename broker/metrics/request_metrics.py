"""Requests per API: how many, with which errors, and how long they took in which phase.

The phases are Kafka's. Of a request that gets its response at once only the time in the handler is
recorded, because its local and its total time are the same and it has no remote time.
"""

from broker.metrics.histogram import Histogram


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

    def histograms(self) -> tuple[Histogram, ...]:
        """All of them."""
        return self.queue, self.immediate, self.local, self.remote, self.total


class RequestMetrics:
    """Counters of all APIs that were requested so far."""

    def __init__(self) -> None:
        self._apis: dict[int, ApiMetrics] = {}

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
