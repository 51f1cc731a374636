"""A follower's position in one partition, and where to truncate a log that has diverged."""

from broker.log.leader_epochs import UNDEFINED_EPOCH
from broker.log.partition_log import PartitionLog
from broker.log.truncation import truncate_to
from broker.replica.partition import Partition


class FollowerState:
    """One partition of a fetcher.

    Field `leader_epoch`: the leader epoch in which it fetches. Invariant: never changes; a new
    epoch gets a new FollowerState.
    Field `fetch_offset`: where the next fetch starts. Invariant: the log end offset.
    Field `last_fetched_epoch`: the leader epoch of the last batch in the log, by which the leader
    finds where the two logs diverge; -1 if the log has no leader epochs.
    Field `log_start_offset`: as reported to the leader.
    Field `is_sent`: the leader has this position, so data in a response belongs to it.
    Field `delayed_until_s`: after an error, it is not fetched before this event-loop time.
    """

    __slots__ = (
        "delayed_until_s",
        "fetch_offset",
        "is_sent",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "partition",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.state.leader_epoch
        self.fetch_offset = self.last_fetched_epoch = self.log_start_offset = -1
        self.is_sent = False
        self.delayed_until_s = 0.0
        self.refresh()

    def refresh(self) -> bool:
        """Set the position to the log's present end; False if the leader knows it already."""
        log = self.partition.log
        position = (log.log_end_offset, latest_epoch(log), log.log_start_offset)
        if self.is_sent and position == (
            self.fetch_offset,
            self.last_fetched_epoch,
            self.log_start_offset,
        ):
            return False
        self.fetch_offset, self.last_fetched_epoch, self.log_start_offset = position
        return True


def latest_epoch(log: PartitionLog) -> int:
    """The leader epoch of the last batch; -1 if none is known."""
    latest = log.leader_epochs.latest_epoch
    return UNDEFINED_EPOCH if latest is None else latest


def truncation_offset(log: PartitionLog, leader_epoch: int, end_offset: int) -> int:
    """Where to truncate a follower's log, given a diverging epoch of the leader (KIP-279).

    `leader_epoch` is the leader's largest epoch not above the follower's last one; in the leader's
    log it ends at `end_offset`.

    A. the follower's epochs all start later: truncate to the leader's offset;
    B. the follower does not have that epoch: truncate to the end of its own next smaller one, and
       let the next fetch compare again;
    C. both have it: truncate to the smaller end offset.
    """
    found = log.end_offset_for_epoch(leader_epoch)
    if found is None:  # A
        return min(end_offset, log.log_end_offset)
    own_epoch, own_end_offset = found
    if own_epoch != leader_epoch:  # B
        return min(own_end_offset, log.log_end_offset)
    return min(own_end_offset, end_offset, log.log_end_offset)  # C


def truncate(partition: Partition, future: PartitionLog | None, offset: int) -> None:
    """Truncate the log, and its future log if it is being moved to another directory."""
    with partition.log.lock:  # so that nothing is copied from one to the other in between
        truncate_to(partition.log, offset)
        if future is not None:
            truncate_to(future, offset)
