"""Kafka's ClientQuotaManager and its kinds: how long clients are throttled for what they use.

A client without a quota costs one look-up, and nothing is measured for it.
"""

from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from broker.errors import ApiError, ErrorCode
from broker.quota.limits import Applied, Name, QuotaLimits
from broker.quota.rates import SampledRate, TokenBucket, Windows, throttle_ms

_EXPIRATION_MS: Final = 3_600_000
"""Sensors that were not used for this long are removed."""
_MAX_CLIENTS: Final = 10_000
"""Maximum number of clients whose quota is cached: clients choose their own ids."""

MeasureT = TypeVar("MeasureT")


class Client(NamedTuple):
    """The client whose quota is used."""

    user: str
    client_id: str


class _Measured:
    """What is measured for a quota, and the resulting throttle times."""

    __slots__ = ("delays", "rate", "requests")

    def __init__(self, windows: Windows) -> None:
        self.rate = SampledRate(windows)
        self.delays = SampledRate(windows)
        self.requests = SampledRate(windows)


class _Sensor(Generic[MeasureT]):
    """What is measured for all clients that share a quota."""

    __slots__ = ("measure", "used_ms")

    def __init__(self, measure: MeasureT, now_ms: float) -> None:
        self.measure = measure
        self.used_ms = now_ms


class _Sensors(Generic[MeasureT]):
    """The quotas of one type, and what is measured for each key."""

    def __init__(self, create: Callable[[float, float], MeasureT]) -> None:
        self._create = create
        self._limits = QuotaLimits()
        self._applied: dict[Client, Applied | None] = {}
        """Invariant: what `_limits` would find."""
        self._sensors: dict[tuple[str | None, str | None], _Sensor[MeasureT]] = {}
        self._purged_ms = 0.0

    def update(self, user: Name, client_id: Name, limit: float | None) -> bool:
        self._limits.update(user, client_id, limit)
        self._applied.clear()
        return bool(self._limits)

    def applied(self, client: Client) -> Applied | None:
        try:
            return self._applied[client]
        except KeyError:
            if len(self._applied) >= _MAX_CLIENTS:
                self._applied.clear()
            found = self._applied[client] = self._limits.find(*client)
            return found

    def measure(self, applied: Applied, now_ms: float) -> MeasureT:
        sensor = self._sensors.get(applied.key)
        if sensor is None:
            self._purge(now_ms)
            sensor = _Sensor(self._create(applied.limit, now_ms), now_ms)
            self._sensors[applied.key] = sensor
        sensor.used_ms = now_ms
        return sensor.measure

    def measures(self) -> list[tuple[tuple[str | None, str | None], MeasureT]]:
        return [(key, sensor.measure) for key, sensor in self._sensors.items()]

    def _purge(self, now_ms: float) -> None:
        if now_ms - self._purged_ms < _EXPIRATION_MS / 60:
            return
        self._purged_ms = now_ms
        oldest_ms = now_ms - _EXPIRATION_MS
        self._sensors = {k: s for k, s in self._sensors.items() if s.used_ms > oldest_ms}


class QuotaUse(NamedTuple):
    """What is measured for the clients that share a quota."""

    user: str
    client_id: str
    """Empty where the quota does not depend on it, as in Kafka."""
    rate: float
    throttle_ms: float
    """The average throttle time of requests within the windows."""


class ClientQuotaManager:
    """Rates of bytes, or of request time.

    Field `is_enabled`: a quota of this type was set. It stays set until the broker restarts, as in
    Kafka.
    """

    def __init__(self, windows: Windows, max_throttle_ms: int | None = None) -> None:
        self.is_enabled = False
        self._windows = windows
        self._max_throttle_ms = max_throttle_ms
        self._sensors = _Sensors(lambda limit, now_ms: _Measured(windows))

    def update(self, user: Name, client_id: Name, limit: float | None) -> None:
        """Set a quota; None removes it."""
        self.is_enabled = self._sensors.update(user, client_id, limit) or self.is_enabled

    def uses(self, now_ms: float) -> list[QuotaUse]:
        """What is measured now; in the event loop."""
        found = []
        for (user, client_id), measured in self._sensors.measures():
            delays, requests = measured.delays.measure(now_ms)[0], measured.requests.measure(now_ms)
            average_ms = delays / requests[0] if requests[0] else 0.0
            rate = measured.rate.measure(now_ms)[0]
            found.append(QuotaUse(user or "", client_id or "", rate, average_ms))
        return found

    def record(self, client: Client, value: float, now_ms: float) -> int:
        """Record a use, and return how many milliseconds to throttle the client."""
        applied = self._sensors.applied(client)
        if applied is None:
            return 0
        sensor = self._sensors.measure(applied, now_ms)
        sensor.rate.record(value, now_ms)
        measured, elapsed_ms = sensor.rate.measure(now_ms)
        delay_ms = throttle_ms(measured, applied.limit, elapsed_ms)
        if self._max_throttle_ms is not None:
            delay_ms = min(delay_ms, self._max_throttle_ms)
        sensor.delays.record(delay_ms, now_ms)
        sensor.requests.record(1, now_ms)
        return delay_ms

    def unrecord(self, client: Client, value: float, now_ms: float) -> None:
        """Undo a record, because nothing was sent after all."""
        applied = self._sensors.applied(client)
        if applied is not None:
            self._sensors.measure(applied, now_ms).rate.record(-value, now_ms)

    def max_value_in_window(self, client: Client) -> float:
        """What a client without recent use can use at once without being throttled."""
        applied = self._sensors.applied(client)
        if applied is None:
            return float("inf")
        num_samples, window_ms = self._windows
        return applied.limit * (num_samples - 1) * window_ms / 1000


class ControllerMutationQuotaManager:
    """Partitions created and deleted per second (KIP-599)."""

    def __init__(self, windows: Windows) -> None:
        self.is_enabled = False
        self._sensors = _Sensors(lambda limit, now_ms: TokenBucket(windows, limit, now_ms))

    def update(self, user: Name, client_id: Name, limit: float | None) -> None:
        """Set a quota; None removes it."""
        self.is_enabled = self._sensors.update(user, client_id, limit) or self.is_enabled

    def quota_for(
        self, client: Client, now_ms: Callable[[], float], *, is_strict: bool
    ) -> "ControllerMutationQuota":
        """The quota of one request."""
        return ControllerMutationQuota(self._sensors, client, now_ms, is_strict=is_strict)


class ControllerMutationQuota:
    """What one request may change.

    A strict quota refuses changes while the bucket is overdrawn; a permissive one, for clients of
    old versions, makes them and throttles.
    """

    def __init__(
        self,
        sensors: _Sensors[TokenBucket],
        client: Client,
        now_ms: Callable[[], float],
        *,
        is_strict: bool,
    ) -> None:
        self._sensors = sensors
        self._client = client
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._throttled_until_ms = 0.0

    def record(self, num_partitions: int) -> None:
        """Record a change before it is made; THROTTLING_QUOTA_EXCEEDED if it must not be made."""
        applied, now_ms = self._sensors.applied(self._client), self._now_ms()
        if applied is None:
            return
        bucket = self._sensors.measure(applied, now_ms)
        if self._is_strict:
            delay_ms = bucket.throttle_ms(applied.limit, now_ms)
            if delay_ms:
                self._throttled_until_ms = now_ms + delay_ms
                raise ApiError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                    "The throttling quota has been exceeded.",
                )
            bucket.take(num_partitions, applied.limit, now_ms)
            return
        bucket.take(num_partitions, applied.limit, now_ms)
        self._throttled_until_ms = now_ms + bucket.throttle_ms(applied.limit, now_ms)

    @property
    def throttle_ms(self) -> int:
        """How long the client is still to be throttled."""
        return max(0, round(self._throttled_until_ms - self._now_ms()))
