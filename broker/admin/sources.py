"""What the admin port reads of a broker. Everything is read in threads, nothing is changed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from broker.admin.broker_state import BrokerState
from broker.api.context import Services
from broker.metadata.session import Session
from broker.metrics.request_metrics import RequestMetrics
from broker.net.poller import Poller


class CountedListener(Protocol):
    """What is read of a listener."""

    @property
    def num_connections(self) -> int:
        """How many connections are open."""

    @property
    def num_accepted(self) -> int:
        """How many connections were accepted since the start."""


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
