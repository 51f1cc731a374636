"""Logs written by Apache Kafka 3.9.1 are opened, rebuilt and appended to, byte for byte."""

from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.log.append import AppendOrigin
from broker.log.checkpoints import (
    read_epochs,
    read_meta_properties,
    read_offsets,
    read_partition_metadata,
    take_clean_shutdown,
    write_clean_shutdown,
    write_epochs,
    write_meta_properties,
    write_offsets,
    write_partition_metadata,
)
from broker.log.config import LogConfig
from broker.log.files import DISK
from broker.log.layout import LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX
from broker.log.producer_snapshot import encode_snapshot, read_snapshot
from broker.log.recovery import LoadFrom
from broker.log.segment import LogSegment
from broker.records.batch import iterate_batches
from broker.records.layout import TimestampType
from tests.log.support import (
    GOLDEN,
    NOW_MS,
    batches_of,
    everything,
    files_of,
    golden_config,
    golden_copy,
    open_log,
)
from tests.support.batches import assign_offset_and_epoch, set_max_timestamp

LOGS = sorted(GOLDEN.glob("magic*/*/*.log"))
DIRECTORIES = sorted({path.parent for path in LOGS})
MAGIC2 = GOLDEN / "magic2"
# Logs hold what producers sent, except these: compaction and DeleteRecords removed records.
APPENDED = [path for path in DIRECTORIES if path.name not in ("compacted-0", "trimmed-0")]


def name_of(path: Path) -> str:
    return str(path.relative_to(GOLDEN))


@pytest.mark.parametrize("log_file", LOGS, ids=name_of)
def test_indexes_rebuilt_from_the_log_are_those_that_kafka_wrote(
    log_file: Path, tmp_path: Path
) -> None:
    (tmp_path / log_file.name).write_bytes(log_file.read_bytes())
    config = golden_config(log_file.parent)
    segment = LogSegment(tmp_path, int(log_file.stem), config, DISK, ManualClock())
    segment.rebuild_indexes()
    for kind in (OFFSET_INDEX, TIME_INDEX):
        assert segment.path(kind).read_bytes() == log_file.with_suffix(kind).read_bytes()


@pytest.mark.parametrize("directory", DIRECTORIES, ids=name_of)
def test_clean_directory_opens_and_closes_without_changing_a_file(
    directory: Path, tmp_path: Path
) -> None:
    copy = golden_copy(directory, tmp_path / "orders-0")
    kinds = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT)
    before = files_of(copy, *kinds)
    start = 321 if directory.name == "trimmed-0" else 0
    load_from = LoadFrom(log_start_offset=start)
    log = open_log(copy, golden_config(directory), load_from=load_from)
    assert everything(log) == b"".join(
        bytes(batch.view)
        for name, data in before.items()
        if name.endswith(LOG)
        for batch in iterate_batches(data)
        if batch.last_offset >= start
    )
    log.close()
    after = files_of(copy, *kinds)
    if start:  # Kafka drops the snapshots before the start offset when it next starts, as we do
        before = {n: d for n, d in before.items() if n in after}
    assert after == before


@pytest.mark.parametrize("directory", DIRECTORIES, ids=name_of)
def test_unclean_directory_recovers_every_batch_and_every_file(
    directory: Path, tmp_path: Path
) -> None:
    copy = golden_copy(directory, tmp_path / "orders-0")
    for path in copy.iterdir():
        if path.suffix in (OFFSET_INDEX, TIME_INDEX):
            path.write_bytes(bytes(4096))  # preallocated, and the process died
        elif path.suffix in (TXN_INDEX, SNAPSHOT):
            path.unlink()
    log = open_log(copy, golden_config(directory), load_from=LoadFrom(is_clean=False))
    log.close()
    kinds = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)
    assert files_of(copy, *kinds) == files_of(directory, *kinds)
    # Kafka too rebuilds the snapshots of the last two segments and of the end only.
    rebuilt, original = files_of(copy, SNAPSHOT), files_of(directory, SNAPSHOT)
    assert rebuilt.items() <= original.items()
    assert max(rebuilt, default="") == max(original, default="")


@pytest.mark.parametrize("directory", APPENDED, ids=name_of)
def test_appending_what_kafka_appended_as_follower_gives_the_same_files(
    directory: Path, tmp_path: Path
) -> None:
    rolls = sorted(int(path.stem) for path in directory.glob("*.log"))[1:]
    log = open_log(tmp_path / "orders-0", golden_config(directory))
    for path in sorted(directory.glob("*.log")):
        for batch in iterate_batches(path.read_bytes()):
            if batch.header.base_offset in rolls:
                log.roll()
            log.append_as_follower(batch.view)
    log.close()
    kinds = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)
    assert files_of(log.directory, *kinds) == files_of(directory, *kinds)
    snapshots = files_of(log.directory, SNAPSHOT)
    assert snapshots == files_of(directory, SNAPSHOT)


@pytest.mark.parametrize(
    "directory",
    [path for path in APPENDED if path.parent == MAGIC2 and path.name != "logappend-0"],
    ids=name_of,
)
def test_stamping_what_producers_sent_gives_the_bytes_that_kafka_stamped(
    directory: Path, tmp_path: Path
) -> None:
    rolls = sorted(int(path.stem) for path in directory.glob("*.log"))[1:]
    log = open_log(tmp_path / "orders-0", golden_config(directory))
    for path in sorted(directory.glob("*.log")):
        for batch in iterate_batches(path.read_bytes()):
            if batch.header.base_offset in rolls:
                log.roll()
            sent = bytearray(batch.view)
            assign_offset_and_epoch(sent, 0, 0, -1)
            from_client = not batch.is_control and not directory.name.startswith("__")
            origin = AppendOrigin.CLIENT if from_client else AppendOrigin.COORDINATOR
            log.append_as_leader(bytes(sent), 0, origin)
    log.close()
    for kind in (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT):
        assert files_of(log.directory, kind) == files_of(directory, kind)
    epochs = (directory / "leader-epoch-checkpoint").read_bytes()
    if batches_of(open_log(golden_copy(directory, tmp_path / "copy"))):
        assert (log.directory / "leader-epoch-checkpoint").read_bytes() == epochs


def test_log_append_time_stamped_as_kafka_stamped_it(tmp_path: Path) -> None:
    directory = MAGIC2 / "logappend-0"
    clock = ManualClock()
    config = LogConfig(message_timestamp_type="LogAppendTime")
    log = open_log(tmp_path / "orders-0", config, clock)
    original = (directory / "00000000000000000000.log").read_bytes()
    for batch in iterate_batches(original):
        clock.advance(batch.max_timestamp - clock.now_ms())
        sent = bytearray(batch.view)
        assign_offset_and_epoch(sent, 0, 0, -1)
        set_max_timestamp(sent, 0, TimestampType.CREATE_TIME, NOW_MS)
        log.append_as_leader(bytes(sent), 0)
    assert everything(log) == original


@pytest.mark.parametrize("path", sorted(MAGIC2.glob("*-checkpoint")), ids=name_of)
def test_offset_checkpoints_are_written_as_kafka_wrote_them(path: Path, tmp_path: Path) -> None:
    write_offsets(tmp_path / "written", read_offsets(path), DISK)
    assert (tmp_path / "written").read_bytes() == path.read_bytes()


def test_offset_checkpoint_holds_the_offsets_kafka_put_there() -> None:
    offsets = read_offsets(MAGIC2 / "log-start-offset-checkpoint")
    assert {str(partition): offset for partition, offset in offsets.items()} == {"trimmed-0": 321}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*/leader-epoch-checkpoint")), ids=name_of)
def test_leader_epoch_checkpoints_are_written_as_kafka_wrote_them(
    path: Path, tmp_path: Path
) -> None:
    write_epochs(tmp_path / "written", read_epochs(path), DISK)
    assert (tmp_path / "written").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*/*.snapshot")), ids=name_of)
def test_snapshots_are_written_as_kafka_wrote_them(path: Path) -> None:
    assert encode_snapshot(read_snapshot(path)) == path.read_bytes()


def test_partition_metadata_is_written_as_kafka_wrote_it(tmp_path: Path) -> None:
    topic_id = read_partition_metadata(MAGIC2 / "plain-0")
    assert topic_id is not None
    write_partition_metadata(tmp_path, topic_id, DISK)
    expected = (MAGIC2 / "plain-0" / "partition.metadata").read_bytes()
    assert (tmp_path / "partition.metadata").read_bytes() == expected


def test_meta_properties_are_written_as_kafka_wrote_them(tmp_path: Path) -> None:
    properties = read_meta_properties(MAGIC2)
    assert properties is not None
    assert properties.broker_id == 0
    assert properties.cluster_id == "Ha7Po1ZyRIu4bYBW19PzUw"
    # The date of golden/logs/magic2/meta.properties: Mon Nov 16 00:07:56 UTC 2026.
    write_meta_properties(tmp_path, properties, 1_794_787_676_000, DISK)
    written = (tmp_path / "meta.properties").read_bytes()
    assert written == (MAGIC2 / "meta.properties").read_bytes()


def test_clean_shutdown_marker_is_written_as_kafka_wrote_it(tmp_path: Path) -> None:
    write_clean_shutdown(tmp_path, -1, DISK)
    expected = (MAGIC2 / ".kafka_cleanshutdown").read_bytes()
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == expected
    assert take_clean_shutdown(tmp_path, DISK)
    assert not take_clean_shutdown(tmp_path, DISK)
