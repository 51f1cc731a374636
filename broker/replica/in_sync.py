"""Who is in sync, and how far the high watermark may go: the arithmetic of a leader, pure.

A follower's fetch says three things: it has everything below its fetch offset, its log begins at
its log start offset, and it is alive now. It was *caught up* when it last asked for the log end:

    fetch offset ≥ the leader's log end offset now        caught up at this fetch
    fetch offset ≥ the log end offset at the last fetch   caught up at the last fetch
    else                                                  not since

The high watermark is the smallest log end offset among the replicas that count: the *maximal* ISR
(the one the controller knows, and those whom it was asked to add), and followers that are caught
up though not in it yet. Without the latter one that returns would run after the watermark forever.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

UNKNOWN_OFFSET = -1


class RemoteReplica:
    """What a leader knows of one of its followers.

    Field `log_end_offset`: everything below is on the follower's disk; -1 before its first fetch.
    Field `last_caught_up_ms`: when it last had all there was. Invariant: never goes back within a
    leader epoch.
    Fields `last_fetch_ms`, `last_fetch_leader_log_end_offset`: of its latest fetch.
    """

    __slots__ = (
        "broker_id",
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

    def fetched(
        self, offset: int, log_start_offset: int, now_ms: int, leader_log_end_offset: int
    ) -> None:
        """It asked for what comes from `offset` on, when the leader's log ended there."""
        if offset >= leader_log_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_log_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.last_fetch_ms = now_ms
        self.last_fetch_leader_log_end_offset = leader_log_end_offset

    def still_fetched(self, at_ms: int) -> None:
        """Until then it asked again and again for the same offset, and there was nothing more."""
        self.last_fetch_ms = max(self.last_fetch_ms, at_ms)
        if self.log_end_offset >= self.last_fetch_leader_log_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, at_ms)

    def begin_epoch(
        self, now_ms: int, log_end_offset: int, *, is_new_leader: bool, is_in_sync: bool
    ) -> None:
        """A leader epoch begins; a member of the ISR gets the benefit of the doubt.

        A new leader knows nothing of its followers. One that goes on leading keeps what it knows.
        A follower outside of the ISR counts as long gone, so that it holds nothing back and does
        not come in before it has fetched.
        """
        self.last_caught_up_ms = now_ms if is_in_sync else 0
        if is_new_leader:
            self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
            self.last_fetch_ms, self.last_fetch_leader_log_end_offset = 0, UNKNOWN_OFFSET
        else:
            self.last_fetch_ms = now_ms if is_in_sync else 0
            self.last_fetch_leader_log_end_offset = log_end_offset

    def is_caught_up(self, leader_log_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it has everything, or had it not long ago."""
        return (
            self.log_end_offset == leader_log_end_offset
            or now_ms - self.last_caught_up_ms <= max_lag_ms
        )


def high_watermark_of(
    log_end_offset: int,
    followers: Iterable[RemoteReplica],
    maximal_isr: AbstractSet[int],
    may_join: Callable[[RemoteReplica], bool],
) -> int:
    """How far the replicas that count have come; at most the leader's log end offset.

    `may_join` says of a follower outside of the ISR whether it is about to become a member.
    """
    lowest = log_end_offset
    for replica in followers:
        if replica.log_end_offset < lowest and (
            replica.broker_id in maximal_isr or may_join(replica)
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
    """The members of the ISR that have lagged for too long; without the leader, who has it all."""
    lagging = {
        replica.broker_id
        for replica in followers
        if not replica.is_caught_up(log_end_offset, now_ms, max_lag_ms)
    }
    return lagging.intersection(isr)


def is_in_sync(replica: RemoteReplica, high_watermark: int, epoch_start_offset: int) -> bool:
    """Whether a follower may join the ISR.

    It has what is committed; and it has come into the present leader epoch, since what lies
    between the leader's high watermark and the start of its epoch may be committed too.
    """
    return replica.log_end_offset >= max(high_watermark, epoch_start_offset)


def low_watermark_of(
    log_start_offset: int, followers: Iterable[RemoteReplica], is_alive: Callable[[int], bool]
) -> int:
    """The smallest log start offset of the leader and its live followers (KIP-107)."""
    starts = [r.log_start_offset for r in followers if is_alive(r.broker_id)]
    return min([log_start_offset, *starts])
