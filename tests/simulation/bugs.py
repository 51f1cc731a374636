"""Bugs that can be put into the simulated brokers, to see that the simulation finds them.

    python -m tests.simulation --bug isr-stuck --seeds 1-20        fails with the seeds that find it

The first two are bugs that the broker had; the events and the timer that prevent them today are
taken out of the table of re-evaluations.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from broker.errors import ErrorCode
from broker.replica import partition as partition_module
from broker.replica.in_sync import RemoteReplica
from broker.replica.partition import Partition
from broker.replica.reevaluation import REEVALUATION, Event, Result


def _forget(events: Iterable[Event], results: Iterable[Result]) -> None:
    """Let these events no longer re-evaluate these results."""
    for event in events:
        left = tuple(result for result in REEVALUATION[event] if result not in results)
        REEVALUATION[event] = left
        reactions = tuple(partition_module._METHODS[result] for result in left)
        partition_module._REACTIONS[event] = reactions
        if event is Event.TIMER:
            methods = partition_module._TIMER_METHODS
            partition_module._ON_TIMER = tuple((each, methods[each]) for each in left)  # type: ignore[misc]


_AFTER_ISR_CHANGES: Final = (Event.ISR_ACCEPTED, Event.ISR_REFUSED, Event.LIVE_BROKERS)


def _isr_stuck() -> None:
    """A follower that caught up just before its removal from the ISR was accepted never returns."""
    _forget(_AFTER_ISR_CHANGES, {Result.ISR_EXPANSION})
    # Both methods of the timer look for followers outside of the ISR.
    _forget((Event.TIMER,), {Result.ISR_EXPANSION, Result.FOLLOWER_FETCHES})


def _isr_healed_by_timer() -> None:
    """The same, but the timer heals it: a missed wake-up, which counts as a bug."""
    _forget(_AFTER_ISR_CHANGES, {Result.ISR_EXPANSION})


def _high_watermark_stands() -> None:
    """After a clean stop the high watermark waits for the broker that was stopped.

    That broker has just been caught up, so it counts until its death is noticed.
    """
    _forget((Event.LIVE_BROKERS, Event.TIMER), {Result.HIGH_WATERMARK})
    begin_epoch = RemoteReplica.begin_epoch

    def keeps_time(self: RemoteReplica, *args: Any, **kwargs: Any) -> None:
        caught_up_ms = self.last_caught_up_ms
        begin_epoch(self, *args, **kwargs)
        self.last_caught_up_ms = max(self.last_caught_up_ms, caught_up_ms)

    RemoteReplica.begin_epoch = keeps_time  # type: ignore[method-assign]


def _early_ack() -> None:
    """The last record of a batch is acknowledged before the ISR has it."""
    acks_reached = Partition.acks_reached

    def too_early(self: Partition, offset: int, required_acks: int = -1) -> ErrorCode | None:
        return acks_reached(self, offset - 1, required_acks)

    Partition.acks_reached = too_early  # type: ignore[method-assign]


BUGS: Final[dict[str, Callable[[], None]]] = {
    "isr-stuck": _isr_stuck,
    "isr-healed-by-timer": _isr_healed_by_timer,
    "high-watermark-stands": _high_watermark_stands,
    "early-ack": _early_ack,
}
"""By name: puts the bug into this process."""
