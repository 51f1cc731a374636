"""The objects to notify when a partition changes: delayed operations and fetch sessions.

Every partition has one `Watchers`. Notification is edge-triggered: a watcher that ignores a change
must remember it, because it is not repeated. Watchers only record the change (they complete an
operation, or mark the partition in a session); they never add or remove watchers while they are
notified.
"""

from collections.abc import Iterable
from typing import Protocol

from broker.replica.purgatory import DelayedOperation


class FetchWatcher(Protocol):
    """One partition in a fetch session."""

    def log_end_advanced(self) -> None:
        """There are more records for a follower."""

    def high_watermark_advanced(self) -> None:
        """There are more records for a consumer, or another watermark for a follower."""

    def read_at_next_fetch(self) -> None:
        """The next fetch must read the partition, even if it has nothing for the client."""

    def has_missed_wakeup(self) -> bool:
        """Whether there is something for the client that the session does not know of."""

    def wake(self) -> None:
        """Read the partition now if a fetch waits, otherwise at the next one."""


class Watchers:
    """The watchers of one partition.

    Field `followers`: the partition in the fetch sessions of followers, which read to the log end.
    Field `consumers`: the same for consumers, which read to the high watermark.
    Field `operations`: DelayedProduce and DelayedDeleteRecords. One that is completed stays here
    until it has run.

    Dictionaries without values: unlike a set they keep the order of arrival, so that waiting
    clients are served in turn and a simulated run can be repeated.
    """

    __slots__ = ("consumers", "followers", "operations")

    def __init__(self) -> None:
        self.followers: dict[FetchWatcher, None] = {}
        self.consumers: dict[FetchWatcher, None] = {}
        self.operations: dict[DelayedOperation, None] = {}

    def log_end_advanced(self) -> None:
        """Wake the fetches of followers."""
        for follower in self.followers:
            follower.log_end_advanced()

    def high_watermark_advanced(self) -> None:
        """Wake the fetches of consumers; the sessions of followers record the change."""
        for consumer in self.consumers:
            consumer.high_watermark_advanced()
        for follower in self.followers:
            follower.high_watermark_advanced()

    def read_at_next_fetch(self) -> None:
        """Let followers' next fetches read the partition: only a fetch expands the ISR."""
        for follower in self.followers:
            follower.read_at_next_fetch()

    def check_operations(self) -> None:
        """Complete the operations whose condition is met."""
        for operation in self.operations:
            operation.try_complete()

    def heal_operations(self) -> int:
        """Complete operations that should have been completed before; returns their number."""
        return sum(operation.try_complete() for operation in self.operations)


def heal_fetches(watchers: Iterable[FetchWatcher]) -> int:
    """Wake sessions that should have been notified before; returns their number."""
    missed = [fetch for fetch in watchers if fetch.has_missed_wakeup()]
    for fetch in missed:
        fetch.wake()
    return len(missed)
