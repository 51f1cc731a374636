"""The rates at which connections may be opened.

An address has quota `connection_creation_rate`, a broker and each of its listeners setting
`max.connection.creation.rate`.
"""

from typing import Final

from broker.quota.rates import SampledRate, Windows, throttle_ms

_MAX_ADDRESSES: Final = 10_000
"""Maximum number of addresses whose rates are kept."""


class ConnectionRates:
    """Counts new connections of addresses that have a limit."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._default: float | None = None
        self._limits: dict[str, float] = {}
        self._rates: dict[str, SampledRate] = {}

    def update(self, address: str | None, limit: float | None) -> None:
        """Set the limit of an address, or of all others (None); a limit of None removes it."""
        if address is None:
            self._default = limit
        elif limit is None:
            self._limits.pop(address, None)
        else:
            self._limits[address] = limit

    def record(self, address: str, now_ms: float) -> int:
        """Count a connection and return how long to delay it: at most one window, as in Kafka.

        A connection that is delayed is not counted.
        """
        limit = self._limits.get(address, self._default)
        if limit is None:
            return 0
        rate = self._rates.get(address)
        if rate is None:
            if len(self._rates) >= _MAX_ADDRESSES:
                self._rates.clear()
            rate = self._rates[address] = SampledRate(self._windows)
        rate.record(1, now_ms)
        delay_ms = min(throttle_ms(*_args(rate, limit, now_ms)), self._windows.window_ms)
        if delay_ms:
            rate.record(-1, now_ms)
        return delay_ms


class CreationRates:
    """Counts new connections of a broker and of its listeners, where they have a limit."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._rates: dict[str | None, SampledRate] = {}

    def record(self, listener_name: str | None, limit: float | None, now_ms: float) -> int:
        """Count a connection of a listener, or (None) of the broker; return how long it must wait.

        At most one window, as in Kafka. A connection that has to wait is counted too.
        """
        if limit is None:
            return 0
        rate = self._rates.get(listener_name)
        if rate is None:
            rate = self._rates[listener_name] = SampledRate(self._windows)
        rate.record(1, now_ms)
        return min(throttle_ms(*_args(rate, limit, now_ms)), self._windows.window_ms)


def _args(rate: SampledRate, limit: float, now_ms: float) -> tuple[float, float, float]:
    measured, elapsed_ms = rate.measure(now_ms)
    return measured, limit, elapsed_ms
