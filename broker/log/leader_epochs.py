"""Which leader wrote which offsets: how a follower finds where its log and the leader's part ways.

Kept in memory and in `leader-epoch-checkpoint`, which is written later: soon in the background,
before the recovery point moves, and on close. A broker that begins to lead a thousand partitions
must not wait for as many flushes of the disk. After a crash nothing is missing that matters: an
entry that was dropped is dropped again by loading, and one that was not written yet is found in the
batches beyond the recovery point, which are read anyway; without a batch nobody asks for it.
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

    Invariant: epochs and start offsets both rise strictly from entry to entry.
    """

    __slots__ = ("_entries", "_fs", "_written", "path")

    def __init__(self, directory: Path, fs: FileSystem) -> None:
        self.path = directory / LEADER_EPOCH_CHECKPOINT
        self._fs = fs
        self._entries: list[EpochEntry] = []
        self._written: list[EpochEntry] = []  # what the file holds

    def load(self) -> None:
        """Read the file; entries that contradict later ones are dropped."""
        self._written = read_epochs(self.path)
        for entry in self._written:
            self._put(entry)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last entry; None where there is none."""
        return self._entries[-1].epoch if self._entries else None

    @property
    def earliest(self) -> EpochEntry | None:
        """The first entry; None where there is none."""
        return self._entries[0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """`epoch` begins at `start_offset`; does nothing for the epoch that is being written.

        Entries not below the new one in both numbers are dropped: they are of a history that the
        new leader does not share.
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
        """Whether the file holds something else."""
        return self._entries != self._written

    def flush(self) -> None:
        """Write the file, unless it holds just this already."""
        if self.is_dirty:
            write_epochs(self.path, self._entries, self._fs)
            self._written = list(self._entries)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset): the largest known epoch up to `epoch`, and where it ended.

        The latest epoch has not ended: its answer is the log end offset. (-1, -1) where nothing is
        known: an undefined epoch, or one newer than all. For an epoch older than all, the start of
        the first: what came before is gone, and the follower shall begin there.
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
        """Forget the epochs that begin at `end_offset` or later."""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that end before `start_offset`; the one it falls into begins there."""
        passed = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if passed and self._entries[:passed] != [(self._entries[passed - 1].epoch, start_offset)]:
            current = EpochEntry(self._entries[passed - 1].epoch, start_offset)
            self._entries[:passed] = [current]

    def clear(self) -> None:
        """Forget all epochs, in the file too."""
        self._entries.clear()
        self.flush()
