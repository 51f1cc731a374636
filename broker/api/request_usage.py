"""The share of its client's quotas that one request uses. Created only if a quota is set.

The response is sent at once, with the throttle time in it; then the connection is muted for that
time (KIP-219). A handler that itself determines that its client must be throttled
sets `throttle_time_ms` in its response.

Request time is time on the event loop: the synchronous part of the handler, and the encoding of
its response. Deliberately missing: time spent in tasks of handlers that wait for the controller.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final

from broker.api.context import RequestContext
from broker.api.rows import Row
from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.schema import Request, Response
from broker.quota.client_quota_manager import Client, ControllerMutationQuota
from broker.quota.quota_managers import QuotaManagers

_PERCENT_PER_NS: Final = 100 / 1_000_000_000
"""100 percent is one thread for a second; a broker has one thread for requests."""

_CLUSTER_ACTIONS: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
    }
)
"""Requests between brokers: exempt from quotas unless they are denied."""


class RequestUsage:
    """Quota usage of one request.

    Field `_started_ns`: when the processing of the request last began or resumed.
    Field `_spent_ns`: for how long it was processed before.
    """

    __slots__ = ("_client", "_now_ms", "_num_bytes", "_quotas", "_spent_ns", "_started_ns")

    def __init__(
        self, quotas: QuotaManagers, client: Client, num_bytes: int, now_ms: Callable[[], int]
    ) -> None:
        self._quotas = quotas
        self._client = client
        self._num_bytes = num_bytes
        self._now_ms = now_ms
        self._spent_ns = 0
        self._started_ns = perf_counter_ns()

    def pause(self) -> None:
        """The request waits for something."""
        self._spent_ns += perf_counter_ns() - self._started_ns

    def resume(self) -> None:
        """The request is processed again."""
        self._started_ns = perf_counter_ns()

    def max_fetch_bytes(self) -> float:
        """How much can be fetched without being throttled, if nothing was fetched recently."""
        return self._quotas.fetch.max_value_in_window(self._client)

    def record_fetch(self, num_bytes: int) -> int:
        """Record a fetch within the quota and return 0; otherwise return the throttle time in ms.

        With a throttle time nothing is recorded, and the response must contain no records.
        """
        fetch, now_ms = self._quotas.fetch, self._now_ms()
        delay_ms = fetch.record(self._client, num_bytes, now_ms)
        if delay_ms:
            fetch.unrecord(self._client, num_bytes, now_ms)
        return delay_ms

    def mutation_quota(self, *, is_strict: bool) -> ControllerMutationQuota:
        """The quota for creating and deleting partitions."""
        return self._quotas.controller_mutation.quota_for(
            self._client, self._now_ms, is_strict=is_strict
        )

    def record(self, row: Row, request: Request[Any], response: Response | None) -> int:
        """Record the usage; returns how long to mute the connection, also set in the response."""
        if _is_exempt(row.api_key, request, response):
            return 0
        has_field = hasattr(response, "throttle_time_ms")
        delay_ms: int = getattr(response, "throttle_time_ms", 0)
        quotas, client, now_ms = self._quotas, self._client, self._now_ms()
        is_produce = row.api_key is ApiKey.PRODUCE
        if is_produce:
            delay_ms = max(delay_ms, quotas.produce.record(client, self._num_bytes, now_ms))
        if not (is_produce and response is None):  # acks=0
            self.pause()
            percent = self._spent_ns * _PERCENT_PER_NS
            delay_ms = max(delay_ms, quotas.request.record(client, percent, now_ms))
        if has_field and delay_ms:
            response.throttle_time_ms = delay_ms  # type: ignore[union-attr]
        return delay_ms


def usage_of(context: RequestContext, num_bytes: int) -> RequestUsage | None:
    """The use of a request of this size that begins now; None while no quota was set."""
    services = context.services
    if services.client_quotas is None:
        return None
    client = Client(context.peer.principal.name, context.client_id or "")
    return RequestUsage(services.client_quotas, client, num_bytes, services.clock.now_ms)


def _is_exempt(api_key: ApiKey, request: Request[Any], response: Response | None) -> bool:
    if isinstance(request, FetchRequest):
        return max(request.replica_id, request.replica_state.replica_id) >= 0
    is_denied = getattr(response, "error_code", 0) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return api_key in _CLUSTER_ACTIONS and not is_denied
