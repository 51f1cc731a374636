"""What partitions need to know about the broker and its cluster."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.clock import Clock, SystemClock
from broker.metrics.topic_stats import BrokerTopicStats

if TYPE_CHECKING:
    from broker.replica.partition import Partition


def _ignore_proposal(partition: "Partition", isr: tuple[int, ...]) -> None:
    """There is no controller."""


def _flush_now(partition: "Partition") -> None:
    """There is no group commit: flush while the caller waits."""
    partition.log.flush_if_due()


@dataclass
class ReplicaEnvironment:
    """One for all partitions of a broker."""

    clock: Clock = field(default_factory=SystemClock)
    max_lag_ms: int = 30_000
    """`replica.lag.time.max.ms`."""
    is_alive: Callable[[int], bool] = lambda _: True
    """Whether a broker is in the cluster."""
    propose_isr: Callable[["Partition", tuple[int, ...]], None] = _ignore_proposal
    """Send an ISR to the controller; the result is `isr_accepted` or `isr_refused`."""
    request_flush: Callable[["Partition"], None] = _flush_now
    """Flush the log soon, because of `flush.messages`; `Event.FLUSHED` follows."""
    num_missed_wakeups: int = 0
    """How often the timer did what an event should have done. Anything above 0 is a bug."""
    topic_stats: BrokerTopicStats = field(default_factory=BrokerTopicStats)
    """Traffic per topic."""
    num_isr_shrinks: int = 0
    num_isr_expands: int = 0
    num_failed_isr_updates: int = 0
