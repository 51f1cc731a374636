"""Loads a partition's directory: completes interrupted work, recovers what was not flushed.

The recovery point is the offset up to which everything is flushed. After a clean shutdown all files
are trusted and no segment is read: the end of the active one is found through its index. After an
unclean shutdown (crash, kill -9, power failure) everything from the recovery point on may be
missing, torn or out of date, so it is read and checked. Steps:

 1. Interrupted work. `.deleted` files are removed. `.cleaned` files are removed, together with the
    `.swap` files at or above their offset: the swap had not begun. The other `.swap` files are
    complete, so the segments that they replace are removed and they are renamed.
 2. Segments. An index without a log is removed. A log without its indexes, or with a damaged
    transaction index, is recovered.
 3. After an unclean shutdown every segment from the recovery point on is recovered: size, crc and
    offset of each batch are checked, indexes and producer state are rebuilt. The segment is
    truncated at the first damaged batch, and the segments after it are deleted.
 4. Leader epochs and producer state are truncated to [log start offset, log end offset).

What a truncation here removes was never flushed on this broker; the other in-sync replicas have it.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broker.errors import CorruptRecord
from broker.log.checkpoints import CorruptCheckpoint, read_partition_metadata
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.layout import (
    CLEANED,
    DELETED,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA_FILE,
    SEGMENT_FILES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    offset_file,
    parse_offset_file,
)
from broker.log.leader_epochs import LeaderEpochs
from broker.log.log_files import LoadedLog
from broker.log.partition_log import PartitionLog
from broker.log.producer_replay import rebuild_producer_state, snapshot_empty_state
from broker.log.producer_state import ProducerState
from broker.log.segment import LogSegment
from broker.log.segments import LogSegments
from broker.model import TopicPartition
from broker.records.batch import Batch, BatchHeader, check_crc
from broker.records.layout import CURRENT_MAGIC

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadFrom:
    """What the log directory's checkpoints say about a partition; the defaults are a new log's."""

    is_clean: bool = True
    """Whether the log directory was shut down cleanly: all of its logs were flushed and closed."""
    log_start_offset: int = 0
    """The first offset that may be read, from `log-start-offset-checkpoint`. Segments may begin
    earlier (DeleteRecords keeps whole segments) or later (retention ran after the checkpoint)."""
    recovery_point: int = 0


"""Everything below it is flushed; from `recovery-point-offset-checkpoint`."""


FROM_SCRATCH = LoadFrom()


def load_log(
    directory: Path,
    partition: TopicPartition,
    config: LogConfig,
    environment: LogEnvironment,
    load_from: LoadFrom = FROM_SCRATCH,
) -> PartitionLog:
    """The log in `directory`, which must exist and may be empty; OSError if the disk fails."""
    loader = _Loader(directory, config, environment, load_from)
    return PartitionLog(directory, partition, config, environment, loader.load())


class _Loader:
    """One load. Its fields become those of the PartitionLog.

    Field `_from`: what the checkpoints say. They may be older than the files, never newer: a
    checkpoint is written after what it describes was flushed.
    Field `_segments`: the segments loaded so far. Invariant: in offset order, each one sound or
    recovered, so that the producer state before the next one can be rebuilt from them.
    Field `_epochs`: the leader epochs, from their checkpoint or noted while segments are recovered.
    Field `_has_lost_epochs`: the checkpoint is unreadable; the epochs are read from the log.
    Field `_names`: the files in the directory, to save a second listing; None once loading has
    created or removed one.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        environment: LogEnvironment,
        load_from: LoadFrom,
    ) -> None:
        self._directory = directory
        self._config = config
        self._env = environment
        self._from = load_from
        self._segments = LogSegments()
        self._epochs = LeaderEpochs(directory, environment.fs)
        self._has_lost_epochs = False
        self._names: set[str] | None = None

    def load(self) -> LoadedLog:
        """Run all steps.

        The order is fixed. Interrupted work comes first, because a half-finished swap shows some
        records in two segments. Epochs are loaded before segments, because recovering a segment
        adds the epochs that it contains. The log end is known only after recovery, and what lies
        beyond it in epochs and producer state must go before the log is used: a follower would
        report epochs of batches that it does not have.
        """
        names = self._finish_interrupted_work(self._list())
        self._names = names
        if LEADER_EPOCH_CHECKPOINT in names:
            self._load_epochs()
        self._load_segments(names)
        if not self._from.is_clean:
            self._recover_unflushed()
        end = self._find_log_end()
        if self._has_lost_epochs:
            self._rebuild_epochs()
        start = max(self._from.log_start_offset, self._segments.first.base_offset)
        self._epochs.truncate_from_end(end)
        self._epochs.truncate_from_start(self._from.log_start_offset)
        state = self._load_producers(start, end)
        # Recovery checks batches but flushes none, so after an unclean shutdown the old recovery
        # point stays: a second crash must check the same batches again.
        point = end if self._from.is_clean else min(self._from.recovery_point, end)
        has_id = PARTITION_METADATA_FILE in names
        topic_id = read_partition_metadata(self._directory) if has_id else None
        return LoadedLog(self._segments, state, self._epochs, start, point, end, topic_id)

    def _list(self) -> set[str]:
        with os.scandir(self._directory) as entries:
            return {entry.name for entry in entries}

    def _segment(self, base_offset: int, suffix: str = "") -> LogSegment:
        env = self._env
        return LogSegment(
            self._directory, base_offset, self._config, env.fs, env.clock, suffix=suffix
        )

    # --- 1. unfinished work --------------------------------------------------------------------

    def _finish_interrupted_work(self, names: set[str]) -> set[str]:
        """Remove or complete the files of interrupted work; returns the names that are left.

        A cleaner writes `.cleaned` files, flushes them and renames them to `.swap`; only then does
        it rename the segments that they replace to `.deleted`. Kafka, which may split a segment
        into several, renames from the highest offset down. So while a `.cleaned` file is left, the
        originals at and above its offset are whole; a `.swap` file below all `.cleaned` ones is
        whole, and the originals that it replaces may be gone in part.
        """
        marked = [name for name in names if name.endswith((DELETED, CLEANED, SWAP))]
        if not marked:
            return names
        # Kafka's order of renames makes the lowest `.cleaned` offset the boundary: every `.swap`
        # file below it belongs to a swap that has begun and must be completed, every one at or
        # above it to a cleaning that is repeated from the originals.
        cleaned = [_offset(name) for name in marked if name.endswith(CLEANED)]
        first_cleaned = min(cleaned, default=2**63)
        for name in marked:
            is_begun = name.endswith(SWAP) and _offset(name) < first_cleaned
            if not is_begun:
                self._env.fs.remove(self._directory / name)
        self._complete_swaps()
        return self._list()

    def _complete_swaps(self) -> None:
        """Let the `.swap` segments replace the originals that they were made from.

        Originals are removed before anything is renamed, so that a crash in between leaves the
        `.swap` files in place and the next load does the same again.
        """
        swaps = sorted(name for name in self._list() if name.endswith(SWAP))
        for name in swaps:
            if name.endswith(LOG + SWAP):
                # As in Kafka: it replaces the originals that begin before its own next offset.
                segment = self._segment(_offset(name), SWAP)
                self._remove_replaced(segment.base_offset, segment.read_next_offset())
                segment.release()
        for name in swaps:  # the log and its indexes
            path = self._directory / name
            if path.exists():
                logger.info("completing swap file=%s", path)
                self._env.fs.rename(path, self._directory / name.removesuffix(SWAP))
        self._env.fs.sync_directory(self._directory)

    def _remove_replaced(self, start: int, end: int) -> None:
        """Remove the segments in [start, end), whose cleaned records are in a `.swap` segment."""
        for name in self._list():
            parsed = parse_offset_file(name)
            if parsed is None or parsed[2]:
                continue
            offset, kind, _ = parsed
            is_replaced = offset == start or start < offset < end
            # The snapshot at `start` is still that of the new segment.
            if is_replaced and (kind in SEGMENT_FILES or (kind == SNAPSHOT and offset > start)):
                self._env.fs.remove(self._directory / name)

    # --- 2. segments ---------------------------------------------------------------------------

    def _load_epochs(self) -> None:
        # Only the derived checkpoint is damaged, and the log contains all it says: a partition must
        # not fail to start because of it.
        try:
            self._epochs.load()
        except CorruptCheckpoint as error:
            logger.warning("reading leader epochs from the log: %s", error)
            self._has_lost_epochs = True

    def _load_segments(self, names: set[str]) -> None:
        """Load every segment in offset order: recovering one needs the producer state before it."""
        # `file[2]` is the suffix of files that are marked for deletion or replacement.
        parsed = [file for file in map(parse_offset_file, names) if file and not file[2]]
        logs = sorted(offset for offset, kind, _ in parsed if kind == LOG)
        for offset, kind, _ in parsed:
            if kind in SEGMENT_FILES and offset not in logs:
                path = offset_file(self._directory, offset, kind)
                logger.warning("removing an index without a log: %s", path)
                self._env.fs.remove(path)
        for offset in logs:
            segment = self._segment(offset)
            if not self._has_sound_indexes(segment, names):
                self._recover(segment)
            self._segments.add(segment)

    @staticmethod
    def _has_sound_indexes(segment: LogSegment, names: set[str]) -> bool:
        """Whether the offset and time index exist and the transaction index, if any, is valid.

        The contents of offset and time index are not read here, because that would open every
        segment of every partition at start. A transaction index exists only where a transaction
        was aborted, and a damaged one would show aborted records to read_committed consumers.
        """
        for kind in (OFFSET_INDEX, TIME_INDEX):
            if f"{segment.base_offset:020d}{kind}" not in names:
                logger.warning("recovering segment=%s: no %s", segment.log.path, kind)
                return False
        if f"{segment.base_offset:020d}{TXN_INDEX}" in names:
            try:
                segment.indexes.txn.check(segment.base_offset)
                segment.indexes.txn.release()
            except CorruptRecord as error:
                logger.warning("recovering segment=%s: %s", segment.log.path, error)
                return False
        return True

    # --- 3. recovery ---------------------------------------------------------------------------

    def _recover_unflushed(self) -> None:
        """Recover every segment that may hold unflushed batches.

        After a damaged batch nothing is kept, not even segments that are sound: offsets in a log
        have no gaps that a leader did not make, and followers would never get the lost records.
        """
        # Includes the segment that contains the recovery point, from its first batch on: indexes
        # and producer state are rebuilt per segment.
        unflushed = self._segments.between(self._from.recovery_point, 2**63)
        for index, segment in enumerate(unflushed):
            dropped = self._recover(segment)
            if dropped:
                logger.warning(
                    "truncated %s corrupt bytes segment=%s size=%s",
                    dropped,
                    segment.log.path,
                    segment.size,
                )
                self._delete(unflushed[index + 1 :])
                return

    def _delete(self, segments: list[LogSegment]) -> None:
        """Delete segments and their snapshots at once, without file.delete.delay.ms.

        No client can be reading them: the log is not open yet.
        """
        self._names = None
        self._segments.remove(segments)
        for segment in segments:
            logger.warning("deleting segment=%s: it follows a corrupt batch", segment.log.path)
            segment.delete()
            self._env.fs.remove(offset_file(self._directory, segment.base_offset, SNAPSHOT))

    def _recover(self, segment: LogSegment) -> int:
        """Check all batches and rebuild what is derived from them; returns the bytes truncated."""
        # A transaction may have begun, and a producer's sequence continues, in earlier segments:
        # the state before this one comes from the latest snapshot and the batches after it.
        state = ProducerState(self._directory, self._env.producer_state, self._env.fs)
        self._names = None
        state.load_snapshot_names(self._list())
        now_ms = self._env.clock.now_ms()
        start = self._from.log_start_offset
        rebuild_producer_state(state, self._segments, start, segment.base_offset, now_ms)
        segment.indexes.txn.reset()
        # One pass over the batches drives everything: `_SoundBatches` checks and stops at the first
        # damaged one, `_noted` records epochs and producers, `rebuild_indexes` adds index entries.
        sound = _SoundBatches(segment)
        segment.rebuild_indexes(self._noted(sound, segment, state))
        dropped = segment.size - sound.end_position
        if dropped:
            segment.log.truncate_to(sound.end_position)
        # Saves reading this segment again when the next one is recovered. Not flushed: a snapshot
        # that a crash tears fails its crc check, and one flush per partition is most of the time
        # that recovering many small partitions takes.
        state.take_snapshot(sync=False)
        segment.release()
        return dropped

    def _noted(
        self, sound: "_SoundBatches", segment: LogSegment, state: ProducerState
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the headers, after recording epochs, producers and completed transactions."""
        for position, batch in sound:
            header = batch.header
            if header.magic >= CURRENT_MAGIC:  # older formats have neither epochs nor producers
                self._note_epoch(header)
                txn = state.append(batch, header)
                aborted = state.complete(txn) if txn is not None else None
                if aborted is not None:
                    segment.indexes.txn.append(aborted)
                state.map_end_offset = header.next_offset
            yield position, header

    def _note_epoch(self, header: BatchHeader) -> None:
        """Start a new epoch at this batch if its leader epoch is higher than all before it.

        Epochs in a log never decrease, so a lower one adds nothing: the checkpoint knew it already.
        """
        latest = self._epochs.latest_epoch
        if latest is None or header.partition_leader_epoch > latest:
            self._epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _rebuild_epochs(self) -> None:
        """Rebuild the epochs from the leader epoch in every batch header.

        This reads all headers of the partition. It happens only if the checkpoint is damaged.
        """
        for segment in self._segments:
            for _, header in segment.log.headers():
                self._note_epoch(header)
            segment.release()

    # --- 4. the end ----------------------------------------------------------------------------

    def _find_log_end(self) -> int:
        """The log end offset. Creates an active segment if the log has no segments."""
        start = self._from.log_start_offset
        if len(self._segments):
            end = self._segments.active.read_next_offset()
            self._segments.active.release()
            if end >= start:
                return end
            # DeleteRecords, or a leader whose log starts later, moved the start past the end of
            # what is left. No record here can be read any more, and an append at `end` would
            # reuse offsets that were deleted.
            logger.warning(
                "deleting all segments: log end offset %s is below log start offset %s dir=%s",
                end,
                start,
                self._directory,
            )
            self._delete(list(self._segments))
            self._epochs.clear()
        segment = self._segment(start)
        segment.create()
        self._segments.add(segment)
        return start

    def _load_producers(self, start: int, end: int) -> ProducerState:
        """The producer state at the log end: the latest valid snapshot, and the batches after it.

        Snapshots beyond the end describe truncated batches; `rebuild_producer_state` removes them.
        """
        state = ProducerState(self._directory, self._env.producer_state, self._env.fs)
        state.load_snapshot_names(self._list() if self._names is None else self._names)
        state.remove_stray_snapshots(self._segments.base_offsets)
        # A log without snapshots after a clean shutdown was written by an old Kafka without
        # idempotent producers, or is empty: reading all of it would find nothing.
        if state.latest_snapshot_offset is None and self._from.is_clean:
            snapshot_empty_state(state, self._segments, end)
        else:
            now_ms = self._env.clock.now_ms()
            rebuild_producer_state(state, self._segments, start, end, now_ms)
        return state


class _SoundBatches:
    """The batches of a segment up to the first damaged one.

    Field `end_position`: where the batches yielded so far end. It advances only after the consumer
    of the iterator has finished with a batch, so a batch on which that fails is truncated as well.
    """

    def __init__(self, segment: LogSegment) -> None:
        self._segment = segment
        self.end_position = 0

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        expected = self._segment.base_offset
        try:
            for position, batch in self._segment.log.batches():
                check_crc(batch)
                self._check_offset(batch, expected)
                expected = batch.next_offset
                yield position, batch
                self.end_position = position + batch.size_in_bytes
        except CorruptRecord as error:
            logger.warning(
                "corrupt batch segment=%s position=%s: %s",
                self._segment.log.path,
                self.end_position,
                error,
            )

    def _check_offset(self, batch: Batch, expected: int) -> None:
        """The crc does not cover the offset, so check that offsets increase and fit the segment."""
        base = batch.header.base_offset
        if base < expected or not self._segment.can_hold(batch.last_offset):
            raise CorruptRecord(f"expected offsets from {expected}, found {base}")


def _offset(name: str) -> int:
    parsed = parse_offset_file(name)
    return parsed[0] if parsed else -1
