"""The leader epochs of a log and their start offsets (Kafka's LeaderEpochFileCache).

A follower uses them to find the offset at which its log diverges from the leader's.

`leader-epoch-checkpoint` is written later than the entries change: in the background, before the
recovery point is raised, and on close, so that a broker that becomes leader of a thousand
partitions does not wait for a thousand flushes. A crash in between is harmless: loading removes an
obsolete entry again, and finds an entry that was not written in the batches beyond the recovery
point. An epoch without batches is not needed.
"""

from bisect import bisect_right
from pathlib import Path

from broker.log.checkpoints import EpochEntry, read_epochs, write_epochs
from broker.log.files import FileSystem
from broker.log.layout import LEADER_EPOCH_CHECKPOINT

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class LeaderEpochs:
    """The epochs of one log.

    Invariant: epochs and start offsets both increase strictly from entry to entry.
    """

    __slots__ = ("_entries", "_fs", "_written", "path")

    def __init__(self, directory: Path, fs: FileSystem) -> None:
        self.path = directory / LEADER_EPOCH_CHECKPOINT
        self._fs = fs
        self._entries: list[EpochEntry] = []
        self._written: list[EpochEntry] = []  # what the file holds

    def load(self) -> None:
        """Read the file; entries that contradict later ones are removed."""
        self._written = read_epochs(self.path)
        for entry in self._written:
            self._put(entry)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last entry; None if there are no entries."""
        return self._entries[-1].epoch if self._entries else None

    @property
    def earliest(self) -> EpochEntry | None:
        """The first entry; None if there are no entries."""
        return self._entries[0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` starts at `start_offset`; no change if it is the latest epoch.

        Entries that are not below the new one in both numbers are removed: the new leader does
        not have that history.
        """
        last = self._entries[-1] if self._entries else None
        if last is not None and last.epoch == epoch:
            if start_offset >= last.start_offset:
                return
        elif epoch < 0 or start_offset < 0:
            return
        self._put(EpochEntry(epoch, start_offset))

    def _put(self, entry: EpochEntry) -> None:
        entries = self._entries
        while entries and (
            entries[-1].epoch >= entry.epoch or entries[-1].start_offset >= entry.start_offset
        ):
            entries.pop()
        entries.append(entry)

    @property
    def is_dirty(self) -> bool:
        """Whether the file differs from the entries in memory."""
        return self._entries != self._written

    def flush(self) -> None:
        """Write the file if it is out of date."""
        if self.is_dirty:
            write_epochs(self.path, self._entries, self._fs)
            self._written = list(self._entries)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset): the largest known epoch up to `epoch`, and where it ended.

        The latest epoch has not ended: its end is the log end offset. (-1, -1) if nothing is known:
        an undefined epoch, or one newer than all. For an epoch older than all, the start of
        the first: earlier records are deleted, and the follower must start there.
        """
        entries = self._entries
        if epoch == UNDEFINED_EPOCH or not entries or epoch > entries[-1].epoch:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == entries[-1].epoch:
            return epoch, log_end_offset
        higher = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        known = entries[higher - 1].epoch if higher else epoch
        return known, entries[higher].start_offset

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch that wrote `offset`; None if it is older than what is known."""
        index = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[index - 1].epoch if index else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that start at `end_offset` or later."""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that end before `start_offset`; the one that contains it starts there."""
        passed = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if passed and self._entries[:passed] != [(self._entries[passed - 1].epoch, start_offset)]:
            current = EpochEntry(self._entries[passed - 1].epoch, start_offset)
            self._entries[:passed] = [current]

    def clear(self) -> None:
        """Remove all epochs, in the file too."""
        self._entries.clear()
        self.flush()
