"""Where a follower stands with one partition, and how it finds back to its leader's log."""

from broker.log.leader_epochs import UNDEFINED_EPOCH
from broker.log.partition_log import PartitionLog
from broker.replica.partition import Partition


class FollowerState:
    """One partition in a fetcher.

    Field `fetch_offset`: what is asked for next. Invariant: the log end offset.
    Field `last_fetched_epoch`: of the last batch in the log, by which the leader sees where the
    two logs part; -1 if the log knows no epochs.
    Field `is_sent`: it is in the fetch session with this offset; else its answers are not ours.
    Field `delayed_until_s`: it is left alone until then, after an error.
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
        """Go on from where the log is now; whether that is another place."""
        log = self.partition.log
        place = (log.log_end_offset, latest_epoch(log), log.log_start_offset)
        if self.is_sent and place == (
            self.fetch_offset,
            self.last_fetched_epoch,
            self.log_start_offset,
        ):
            return False
        self.fetch_offset, self.last_fetched_epoch, self.log_start_offset = place
        return True


def latest_epoch(log: PartitionLog) -> int:
    """The epoch of the last batch; -1 if none is known."""
    latest = log.leader_epochs.latest_epoch
    return UNDEFINED_EPOCH if latest is None else latest


def truncation_offset(log: PartitionLog, leader_epoch: int, end_offset: int) -> int:
    """Where to cut our log, when the leader says that `leader_epoch` ended there (KIP-279).

    It is the largest epoch of the leader's that is not above our last one.

    A. our epochs begin later: nothing of ours is older than what the leader has, its offset counts;
    B. we do not have that epoch: cut ours below it, and the next fetch compares again;
    C. we both have it: the shorter one counts.
    """
    found = log.end_offset_for_epoch(leader_epoch)
    if found is None:  # A
        return min(end_offset, log.log_end_offset)
    own_epoch, own_end_offset = found
    if own_epoch != leader_epoch:  # B
        return min(own_end_offset, log.log_end_offset)
    return min(own_end_offset, end_offset, log.log_end_offset)  # C


def cut(partition: Partition, future: PartitionLog | None, offset: int) -> None:
    """Drop what the leader does not have, from a copy on its way to another directory too."""
    with partition.log.lock:  # so that nothing is copied in between
        partition.log.truncate_to(offset)
        if future is not None:
            future.truncate_to(offset)
