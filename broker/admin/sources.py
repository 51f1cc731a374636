"""The parts of a broker that the admin port reads, in its own threads. It changes nothing."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from broker.admin.broker_state import BrokerState
from broker.api.context import Services
from broker.metadata.session import Session
from broker.metrics.request_metrics import RequestMetrics
from broker.net.poller import Poller
from broker.quota.quota_managers import QuotaManagers


class CountedListener(Protocol):
    """The listener counters that the admin port reads."""

    @property
    def num_connections(self) -> int:
        """How many connections are open."""

    @property
    def num_accepted(self) -> int:
        """How many connections were accepted since the start."""

    @property
    def addresses(self) -> list[tuple[str, int, str]]:
        """Host, port and listener of each open connection."""


class Mark(NamedTuple):
    """Counters at one time."""

    time_s: float
    idle_s: float
    accepted: Mapping[str, int]
    """By listener."""
    opened: Mapping[str, int]


@dataclass
class AdminSources:
    """The parts of a broker. Fields that are None are set when the broker has built them."""

    broker_id: int = -1
    state: BrokerState = BrokerState.STARTING
    requests: RequestMetrics = field(default_factory=RequestMetrics)
    listeners: dict[str, CountedListener] = field(default_factory=dict)
    poller: Poller | None = None
    session: Session | None = None
    services: Services | None = None
    run_in_loop: Callable[[Callable[[], object]], object] | None = None
    """Runs a callback in the event loop's next iteration; may be called in any thread."""
    started_s: float = field(default_factory=time.perf_counter)
    marks: deque[Mark] = field(default_factory=lambda: deque(maxlen=2))
    """Counters at the ends of the last two minutes. Rates are computed since the older one."""
    quotas: QuotaManagers | None = None

    def rotate(self) -> None:
        """Begin a new interval of quantiles and rates; once per minute, in the event loop."""
        self.requests.rotate()
        self.requests.forget_closed({a for one in self.listeners.values() for a in one.addresses})
        if self.services is not None:
            self.services.replicas.logs.flush_times.rotate()
        if self.session is not None:
            self.session.request_times.rotate()
        self.marks.append(self.mark())

    def mark(self) -> Mark:
        """The counters from which rates are computed."""
        idle_s = self.poller.idle_s if self.poller is not None else 0.0
        accepted = {name: one.num_accepted for name, one in self.listeners.items()}
        opened = {name: one.num_connections for name, one in self.listeners.items()}
        return Mark(time.perf_counter(), idle_s, accepted, opened)

    def since(self) -> Mark:
        """The counters one to two minutes ago, or at the start."""
        return self.marks[0] if self.marks else Mark(self.started_s, 0.0, {}, {})
