"""`dump-log check`: reads every file as the broker does and compares it with the others.

In a partition: batches (size, CRC, records, order of offsets and epochs, gaps), offset, time and
transaction indexes, snapshots, leader epochs, metadata, leftovers. In a log directory: checkpoints,
compared with the log end offsets. Nothing is changed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from broker.errors import CorruptRecord
from broker.log.checkpoints import (
    CorruptCheckpoint,
    read_epochs,
    read_meta_properties,
    read_offsets,
    read_partition_metadata,
)
from broker.log.layout import (
    CLEANER_OFFSET_CHECKPOINT,
    DELETED,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    SNAPSHOT,
    parse_offset_file,
    parse_partition_dir,
)
from broker.log.leader_epochs import LeaderEpochs
from broker.log.producer_snapshot import read_snapshot
from broker.model import TopicPartition
from broker.records.batch import Batch
from broker.records.layout import CURRENT_MAGIC
from kctl.dump.checking.findings import COMPARE, REBUILD, REPAIR, Finding
from kctl.dump.checking.indexes import Report, segment_indexes
from kctl.dump.progress import Watch
from kctl.dump.reading.decoders import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kctl.dump.reading.files import DumpFile, FileKind, Unusable
from kctl.dump.reading.readers import READ_ONLY, corrupt_batch, open_records

CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)


def partition_directories(directory: Path) -> list[Path]:
    """The partition directories to check: the directory itself, or those in it.

    Unusable if it contains no partition.
    """
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise Unusable(directory, (error.strerror or str(error)).lower()) from error
    if any(entry.suffix == LOG for entry in entries):
        return [directory]
    found = [entry for entry in entries if parse_partition_dir(entry.name) and entry.is_dir()]
    if not found:
        raise Unusable(directory, "no log segments and no partitions in this directory")
    return found


def check_directory(directory: Path, report: Report, watch: Watch) -> None:
    """Report all problems; OSError if a file cannot be read."""
    partitions = partition_directories(directory)
    log_dir = directory if partitions != [directory] else directory.absolute().parent
    checkpoints = _Checkpoints(log_dir, report if log_dir is directory else _ignore)
    ends: dict[TopicPartition, int] = {}
    for path in partitions:
        partition = parse_partition_dir(path.absolute().name)
        compacted_to = checkpoints.offset(CLEANER_OFFSET_CHECKPOINT, partition)
        check = _PartitionCheck(path, report, watch, is_compacted=compacted_to is not None)
        end = check.run()
        # Not for a directory marked for deletion: the partition may have been created again.
        if partition and path.absolute().name == str(partition):
            ends[partition] = end
    checkpoints.compare(ends, report)


def _ignore(_: Finding) -> None:
    """Ignore findings in the log directory of a single partition that is checked."""


class _Checkpoints:
    """The files of the log directory itself."""

    def __init__(self, log_dir: Path, report: Report) -> None:
        self._offsets: dict[str, dict[TopicPartition, int]] = {}
        self._log_dir = log_dir
        for name in CHECKPOINTS:
            with _guard("checkpoint", log_dir / name, report, REBUILD):
                self._offsets[name] = read_offsets(log_dir / name)
        with _guard("metadata", log_dir / META_PROPERTIES_FILE, report, "write it again"):
            read_meta_properties(log_dir)

    def offset(self, name: str, partition: TopicPartition | None) -> int | None:
        """The offset of a partition in a checkpoint."""
        return self._offsets.get(name, {}).get(partition) if partition else None

    def compare(self, ends: dict[TopicPartition, int], report: Report) -> None:
        """Report checkpoints beyond the end of their log."""
        for name, offsets in self._offsets.items():
            for partition, offset in offsets.items():
                end = ends.get(partition)
                if end is not None and offset > end:
                    problem = f"{partition} has offset {offset}, its log ends at {end}"
                    report(Finding("checkpoint", self._log_dir / name, None, problem, COMPARE))


@contextmanager
def _guard(check: str, path: Path, report: Report, remedy: str) -> Iterator[None]:
    """Report a file that is found to be damaged inside the block."""
    try:
        yield
    except (CorruptRecord, CorruptCheckpoint) as error:
        problem = str(error).removeprefix(str(path)).lstrip(": ")
        report(Finding(check, path, None, problem, remedy))


@dataclass
class _PartitionCheck:
    """Checks one partition: its segments in order, then snapshots."""

    directory: Path
    report: Report
    watch: Watch
    is_compacted: bool
    expected_offset: int | None = None
    latest_epoch: int = -1
    gaps: list[Finding] = field(default_factory=list)
    epochs: LeaderEpochs = field(init=False)

    def __post_init__(self) -> None:
        partition = parse_partition_dir(self.directory.absolute().name)
        if partition and partition.topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            self.is_compacted = True
        self.epochs = LeaderEpochs(self.directory, READ_ONLY)

    def run(self) -> int:
        """Check the partition; returns its log end offset."""
        names = sorted(entry.name for entry in self.directory.iterdir() if entry.is_file())
        self._check_names(names)
        self._check_metadata()
        segments = [
            file[0] for file in map(parse_offset_file, names) if file and file[1:] == (LOG, "")
        ]
        for base_offset, following in zip_longest(segments, segments[1:]):
            self._check_segment(base_offset, following)
        if not self.is_compacted:
            for gap in self.gaps:
                self.report(gap)
        end = self.expected_offset or 0
        for name in names:
            if (parsed := parse_offset_file(name)) and parsed[1:] == (SNAPSHOT, ""):
                self._check_snapshot(self.directory / name, parsed[0], end)
        return end

    def _check_names(self, names: list[str]) -> None:
        known = {LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA_FILE}
        for name in names:
            path = self.directory / name
            parsed = parse_offset_file(name)
            if name in known:
                continue
            if parsed is None:
                problem, remedy = "not a file of a log", "move it away: the broker does not use it"
                self.report(Finding("name", path, None, problem, remedy))
            elif parsed[2] == DELETED:
                continue  # normal in a running broker, until file.delete.delay.ms has passed
            elif parsed[2]:
                problem = f"left over from an interrupted operation ({parsed[2]})"
                remedy = "nothing: the broker completes or removes it at startup"
                self.report(Finding("leftover", path, None, problem, remedy))

    def _check_metadata(self) -> None:
        path = self.directory / PARTITION_METADATA_FILE
        with _guard("metadata", path, self.report, COMPARE):
            read_partition_metadata(self.directory)
        with _guard("epoch", self.epochs.path, self.report, REBUILD):
            stored = read_epochs(self.epochs.path)
            self.epochs.load()
            if tuple(stored) != self.epochs.entries:
                problem = "epochs and start offsets are not both increasing"
                self.report(Finding("epoch", self.epochs.path, None, problem, REBUILD))

    # --- segments ------------------------------------------------------------------------------

    def _check_segment(self, base_offset: int, following: int | None) -> None:
        path = self.directory / f"{base_offset:020d}{LOG}"
        if self.expected_offset is None:
            self.expected_offset = base_offset
        indexes = segment_indexes(self.directory, base_offset, self.report)
        on_position = self.watch(DumpFile(path, FileKind.LOG, base_offset, is_named=False))
        records = open_records(path)
        end = 0
        try:
            for position, batch in records.batches():
                self._check_batch(path, position, batch, following)
                indexes.see(position, batch)
                end = position + batch.size_in_bytes
                on_position(end)
        except CorruptRecord as error:
            self._no_batch(path, end, str(error).rpartition(": ")[2])
        else:
            if end < records.size:
                self._no_batch(
                    path, end, f"the last {records.size - end} bytes are not a whole batch"
                )
        with _guard("txnindex", path, self.report, REBUILD):
            indexes.end(is_active=following is None)

    def _no_batch(self, path: Path, position: int, problem: str) -> None:
        self.report(Finding("batch", path, position, problem, REPAIR))

    def _check_batch(self, path: Path, position: int, batch: Batch, following: int | None) -> None:
        def find(check: str, problem: str, remedy: str) -> None:
            self.report(Finding(check, path, position, problem, remedy))

        header = batch.header
        if not batch.is_crc_valid():
            found = batch.computed_crc()
            find("crc", f"expected crc {header.crc}, found {found}", REPAIR)
        else:
            self._check_records(path, position, batch)
        self._check_order(path, position, batch)
        if following is not None and batch.last_offset >= following:
            find("order", f"offset {batch.last_offset} belongs to segment {following}", COMPARE)
        if header.magic >= CURRENT_MAGIC:
            self._check_epoch(batch, find)

    def _check_records(self, path: Path, position: int, batch: Batch) -> None:
        """Check the records: compressed ones can be unreadable although the CRC is valid."""
        try:
            offsets = batch.columns().offsets
        except CorruptRecord as error:
            problem = str(corrupt_batch(path, position, error)).partition(": ")[2]
            self.report(Finding("batch", path, position, problem, COMPARE))
            return
        first = batch.base_offset
        is_rising = all(map(int.__lt__, offsets, offsets[1:]))
        if offsets and not (first <= offsets[0] and offsets[-1] <= batch.last_offset and is_rising):
            problem = f"the records are not in order between {first} and {batch.last_offset}"
            self.report(Finding("order", path, position, problem, COMPARE))
        if batch.magic >= CURRENT_MAGIC and len(offsets) <= batch.header.last_offset_delta:
            self.is_compacted = True  # only the cleaner removes records from a batch

    def _check_order(self, path: Path, position: int, batch: Batch) -> None:
        expected, first = self.expected_offset or 0, batch.header.base_offset
        if first < expected:
            problem = f"begins with offset {first}, expected {expected} or above"
            self.report(Finding("order", path, position, problem, REPAIR))
        elif first > expected and batch.magic >= CURRENT_MAGIC:
            problem = f"offsets {expected} to {first - 1} are missing"
            self.gaps.append(Finding("gap", path, position, problem, COMPARE))
        self.expected_offset = max(expected, batch.next_offset)

    def _check_epoch(self, batch: Batch, find: Callable[[str, str, str], None]) -> None:
        epoch = batch.header.partition_leader_epoch
        if epoch < self.latest_epoch:
            find("epoch", f"leader epoch {epoch} follows {self.latest_epoch}", COMPARE)
        elif epoch >= 0:
            known = self.epochs.epoch_for_offset(batch.header.base_offset)
            if known is not None and known != epoch:
                problem = f"leader epoch {epoch}, {LEADER_EPOCH_CHECKPOINT} says {known}"
                find("epoch", problem, COMPARE)
        self.latest_epoch = max(epoch, self.latest_epoch)

    # --- snapshots -----------------------------------------------------------------------------

    def _check_snapshot(self, path: Path, offset: int, end: int) -> None:
        if offset > end:
            problem = f"of offset {offset}, the log ends at {end}"
            self.report(Finding("snapshot", path, None, problem, REBUILD))
        with _guard("snapshot", path, self.report, REBUILD):
            for entry in read_snapshot(path):
                if entry.last_offset >= offset or entry.current_txn_first_offset >= offset:
                    problem = f"producer {entry.producer_id} is beyond the snapshot's offset"
                    self.report(Finding("snapshot", path, None, problem, REBUILD))
