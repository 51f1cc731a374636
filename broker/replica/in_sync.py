"""Which replicas are in sync, and how far the high watermark may advance: pure functions.

A follower's fetch tells the leader that the follower has everything below its fetch offset, where
its log starts, and that it is alive. It was *caught up* when it last asked for the log end:

    fetch offset >= the leader's log end offset now               caught up at this fetch
    fetch offset >= the log end offset at the follower's last fetch   caught up at that last fetch
    otherwise                                                     not since

An idle follower repeats its fetch through a fetch session, whose requests do not name partitions
that have not changed. They count as fetches of the same offset until the log grows.

The high watermark is the smallest log end offset of the replicas that count. These are the
*maximal* ISR (the committed one, and the members that the controller was asked to add), and
followers outside of it that were caught up lately. If the latter did not count, the high watermark
would stay ahead of a follower that returns, and it could never join.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Protocol

UNKNOWN_OFFSET = -1


class FetchTimes(Protocol):
    """The part of a follower's fetch session that is used here."""

    last_fetch_ms: int
    """When the follower last sent a fetch request of this session."""


class RemoteReplica:
    """What a leader knows about one follower.

    Field `log_end_offset`: the follower has everything below it; -1 before its first fetch.
    Field `log_start_offset`: where the follower's log starts; -1 before its first fetch.
    Field `last_caught_up_ms`: when it last had everything. Invariant: within a leader epoch it goes
    back only to 0, when the controller refuses the follower as a member of the ISR.
    Fields `last_fetch_ms`, `last_fetch_leader_log_end_offset`: time of the latest fetch, and the
    leader's log end offset at that time.
    Field `idle_session`: the fetch session that repeats the follower's latest fetch. Invariant: set
    only if that fetch asked for the log end, in the present leader epoch, and the log has not
    grown since.
    """

    __slots__ = (
        "broker_id",
        "idle_session",
        "last_caught_up_ms",
        "last_fetch_leader_log_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_caught_up_ms = 0
        self.last_fetch_ms = 0
        self.last_fetch_leader_log_end_offset = 0
        self.idle_session: FetchTimes | None = None

    def fetched(
        self,
        offset: int,
        log_start_offset: int,
        now_ms: int,
        leader_log_end_offset: int,
        session: FetchTimes | None = None,
    ) -> None:
        """Record a fetch from `offset`."""
        if offset >= leader_log_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
            self.idle_session = session
        else:
            self.idle_session = None
            if offset >= self.last_fetch_leader_log_end_offset:
                self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.last_fetch_ms = now_ms
        self.last_fetch_leader_log_end_offset = leader_log_end_offset

    def end_idle(self) -> None:
        """The log has grown, or the session has dropped the partition: account for its fetches.

        Until its last request the session asked for the log end, so the follower was caught up.
        """
        session = self.idle_session
        if session is not None:
            self.idle_session = None
            self.last_fetch_ms = max(self.last_fetch_ms, session.last_fetch_ms)
            self.last_caught_up_ms = max(self.last_caught_up_ms, session.last_fetch_ms)

    def refused(self) -> None:
        """The controller refuses this replica as a member of the ISR (it shuts down, for example).

        It does not count as caught up until its next fetch, so it cannot hold back the high
        watermark after it has stopped fetching.
        """
        self.last_caught_up_ms = 0
        self.idle_session = None

    def begin_epoch(
        self, now_ms: int, log_end_offset: int, *, is_new_leader: bool, is_in_sync: bool
    ) -> None:
        """A leader epoch begins; members of the ISR count as caught up at its start.

        A new leader knows nothing about its followers. A leader that continues keeps the offsets.
        A follower outside of the ISR counts as never caught up: it does not hold back the high
        watermark, and does not join before it has fetched in this epoch. Requests that a fetch
        session sent in an older epoch prove nothing in this one.
        """
        self.idle_session = None
        self.last_caught_up_ms = now_ms if is_in_sync else 0
        if is_new_leader:
            self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
            self.last_fetch_ms, self.last_fetch_leader_log_end_offset = 0, UNKNOWN_OFFSET
        else:
            self.last_fetch_ms = now_ms if is_in_sync else 0
            self.last_fetch_leader_log_end_offset = log_end_offset

    def is_caught_up(self, leader_log_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it has everything, or had everything at most `max_lag_ms` ago."""
        return (
            self.log_end_offset == leader_log_end_offset
            or now_ms - self.last_caught_up_ms <= max_lag_ms
        )


def high_watermark_of(
    log_end_offset: int,
    followers: Iterable[RemoteReplica],
    maximal_isr: AbstractSet[int],
    is_joining: Callable[[RemoteReplica], bool],
) -> int:
    """The smallest log end offset of the replicas that count, at most the leader's.

    `is_joining` tells whether a follower outside of the maximal ISR counts.
    """
    lowest = log_end_offset
    for replica in followers:
        if replica.log_end_offset < lowest and (
            replica.broker_id in maximal_isr or is_joining(replica)
        ):
            lowest = replica.log_end_offset
    return lowest


def out_of_sync_replicas(
    isr: Iterable[int],
    followers: Iterable[RemoteReplica],
    log_end_offset: int,
    now_ms: int,
    max_lag_ms: int,
) -> set[int]:
    """The members of the ISR that have lagged for too long. Never contains the leader."""
    lagging = {
        replica.broker_id
        for replica in followers
        if not replica.is_caught_up(log_end_offset, now_ms, max_lag_ms)
    }
    return lagging.intersection(isr)


def is_in_sync(replica: RemoteReplica, high_watermark: int, epoch_start_offset: int) -> bool:
    """Whether a follower has enough to join the ISR.

    It must have everything committed. It must also have reached the start of the leader's epoch:
    records between the leader's high watermark and that offset may be committed too.
    """
    return replica.log_end_offset >= max(high_watermark, epoch_start_offset)


def low_watermark_of(
    log_start_offset: int, followers: Iterable[RemoteReplica], is_alive: Callable[[int], bool]
) -> int:
    """The smallest log start offset of the leader and its live followers (KIP-107)."""
    starts = [r.log_start_offset for r in followers if is_alive(r.broker_id)]
    return min([log_start_offset, *starts])
