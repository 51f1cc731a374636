"""Logs written by Apache Kafka, exported without Spark and compared with its own tool."""

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from broker.errors import CorruptRecord
from kctl.cli.errors import CliError
from kctl.spark.decoding.columns import DEFAULT_COLUMNS
from kctl.spark.planning.selection import Selection, choose_ranges
from kctl.spark.planning.settings import IsolationLevel, TaskSettings
from kctl.spark.publishing.export_directory import LocalExportDirectory
from kctl.spark.reading.log_directory import LogDirectorySource
from kctl.spark.reading.pieces import piece_tables
from tests.spark.support import (
    GOLDEN,
    LOGS,
    export_without_spark,
    exported,
    kafka_printed,
    sizes,
    write_log,
)

PLAIN = ["codec-gzip", "codec-lz4", "codec-snappy", "codec-zstd", "compacted", "idempotent"]
PLAIN += ["logappend", "plain", "rolled", "grp"]
OLD = ["old", "old-gzip", "old-lz4", "old-snappy"]
CASES = [("magic2", topic) for topic in PLAIN]
CASES += [(tree, topic) for tree in ("magic0", "magic1") for topic in OLD]


@pytest.mark.parametrize("task_bytes", [1 << 30, 5000])
@pytest.mark.parametrize(("tree", "topic"), CASES)
def test_exported_records_are_those_that_kafka_prints(
    tmp_path: Path, tree: str, topic: str, task_bytes: int
) -> None:
    target = LocalExportDirectory(str(tmp_path / "out"))
    export_without_spark(GOLDEN / "logs" / tree, target, topic, task_bytes=task_bytes)
    printed = kafka_printed(tree, f"{topic}-0")
    assert printed
    assert sizes(exported(target.path)) == printed


def test_keys_values_and_times_are_the_bytes_that_were_written(tmp_path: Path) -> None:
    target = LocalExportDirectory(str(tmp_path / "out"))
    export_without_spark(LOGS, target, "txn")
    first = exported(target.path)[0]
    assert (first["key"], first["value"]) == (b"0", b"txn 0 row 0" * 4)
    assert first["timestamp"].timestamp() == 1_700_000_000
    assert first["timestamp_type"] == "CreateTime"


def test_memory_of_a_task_does_not_depend_on_the_size_of_the_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kctl.spark.reading.pieces.CHUNK_BYTES", 100_000)
    batches = [
        [(at + base, 0, None, bytes(1000), ()) for at in range(10)] for base in range(0, 2000, 10)
    ]
    write_log(tmp_path / "t-0", batches)
    source = LogDirectorySource([tmp_path])
    (offsets,) = choose_ranges(source, Selection(("t",)))
    (piece,) = source.pieces(offsets, 1 << 30)
    tables = piece_tables(piece, TaskSettings(""), ("offset", "value"))
    sizes_seen = [table.nbytes for table, _ in tables]
    assert sum(sizes_seen) > 2_000_000
    assert max(sizes_seen) < 120_000


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts the bytes read, by Linux")
def test_regression_planning_does_not_read_preallocated_indexes(tmp_path: Path) -> None:
    partitions, index_bytes = 20, 10 * 1024 * 1024
    for number in range(partitions):
        log = write_log(tmp_path / f"t-{number}", [[(0, 0, None, b"v", ())]])
        for suffix in (".index", ".timeindex"):
            with log.with_suffix(suffix).open("wb") as index:
                index.truncate(index_bytes)
    before = bytes_read()
    source = LogDirectorySource([tmp_path])
    ranges = choose_ranges(source, Selection(("t",)))
    pieces = [piece for each in ranges for piece in source.pieces(each, 1 << 20)]
    assert len(pieces) == partitions
    assert bytes_read() - before < index_bytes


def bytes_read() -> int:
    """What this process has read, from files or the page cache."""
    return int(re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text())[0])


def test_one_large_partition_becomes_many_tasks() -> None:
    source = LogDirectorySource([LOGS])
    (offsets,) = choose_ranges(source, Selection(("rolled",)))
    pieces = list(source.pieces(offsets, 5000))
    assert len(pieces) > len(list((LOGS / "rolled-0").glob("*.log")))
    by_file: dict[str, int] = {}
    for piece in pieces:
        assert piece.position == by_file.get(piece.path, 0)
        by_file[piece.path] = piece.position + piece.size_bytes
    assert by_file == {p: Path(p).stat().st_size for p in by_file}


def test_read_committed_leaves_out_what_was_aborted(tmp_path: Path) -> None:
    printed = [offset for offset, *_ in kafka_printed("magic2", "txn-0")]
    both = {}
    for level in IsolationLevel:
        target = LocalExportDirectory(str(tmp_path / level))
        settings = TaskSettings("", isolation=level)
        export_without_spark(LOGS, target, "txn", settings=settings, task_bytes=500)
        both[level] = exported(target.path)
    assert [r["offset"] for r in both[IsolationLevel.READ_UNCOMMITTED]] == printed
    committed = both[IsolationLevel.READ_COMMITTED]
    assert 0 < len(committed) < len(printed)
    assert len(committed) == 180


def test_trimmed_log_begins_at_its_log_start_offset(tmp_path: Path) -> None:
    target = LocalExportDirectory(str(tmp_path / "out"))
    export_without_spark(LOGS, target, "trimmed")
    assert [row["offset"] for row in exported(target.path)] == list(range(321, 500))


def test_regression_export_without_records_has_a_file_with_its_columns(tmp_path: Path) -> None:
    target = LocalExportDirectory(str(tmp_path / "out"))
    export_without_spark(LOGS, target, "empty")
    manifest = target.manifest(1)
    assert [file["records"] for file in manifest["files"]] == [0]
    assert exported(target.path) == []
    assert pq.read_schema(target.export_path(1) / manifest["files"][0]["path"]).names == [
        *DEFAULT_COLUMNS
    ]
    assert [(p["topic"], p["records"]) for p in manifest["partitions"]] == [("empty", 0)]


def test_manifest_names_offsets_records_bytes_and_files(tmp_path: Path) -> None:
    target = LocalExportDirectory(str(tmp_path / "out"))
    export_without_spark(LOGS, target, "compacted")
    manifest = target.manifest(1)
    rows = exported(target.path)
    (partition,) = manifest["partitions"]
    assert partition["records"] == len(rows)
    assert (partition["first_offset"], partition["last_offset"]) == (
        rows[0]["offset"],
        rows[-1]["offset"],
    )
    assert partition["range"] == {"first_offset": 0, "end_offset": 605}
    assert sum(file["records"] for file in manifest["files"]) == len(rows)


def damaged(tmp_path: Path, name: str) -> Path:
    shutil.copytree(GOLDEN / "logs" / "corrupt" / name, tmp_path / "logs" / "rolled-0")
    return tmp_path / "logs"


def test_torn_tail_ends_the_log(tmp_path: Path) -> None:
    target = LocalExportDirectory(str(tmp_path / "out"))
    export_without_spark(damaged(tmp_path, "torn-0"), target, "rolled")
    whole = kafka_printed("magic2", "rolled-0")
    found = sizes(exported(target.path))
    assert 0 < len(found) < len(whole)
    assert found == whole[: len(found)]


def test_wrong_index_changes_nothing(tmp_path: Path) -> None:
    target = LocalExportDirectory(str(tmp_path / "out"))
    logs = damaged(tmp_path, "badindex-0")
    export_without_spark(logs, target, "rolled", task_bytes=3000)
    offsets = [row["offset"] for row in exported(target.path)]
    assert offsets == [offset for offset, *_ in kafka_printed("magic2", "rolled-0")]


def test_flipped_bit_is_an_error_with_file_and_position(tmp_path: Path) -> None:
    target = LocalExportDirectory(str(tmp_path / "out"))
    with pytest.raises(CorruptRecord, match=r"rolled-0/\d{20}\.log position \d+: .*expected crc"):
        export_without_spark(damaged(tmp_path, "flipped-0"), target, "rolled")
    assert target.exports() == []


def test_partition_without_a_segment_is_empty(tmp_path: Path) -> None:
    write_log(tmp_path / "t-0", [[(0, 1, None, b"x", ())]])
    (tmp_path / "t-1").mkdir()
    ranges = choose_ranges(LogDirectorySource([tmp_path]), Selection(("t",)))
    assert [(each.partition, each.is_empty) for each in ranges] == [(0, False), (1, True)]


def test_longer_of_two_replicas_is_used(tmp_path: Path) -> None:
    write_log(tmp_path / "a" / "t-0", [[(0, 1, None, b"x", ())]])
    write_log(tmp_path / "b" / "t-0", [[(0, 1, None, b"x", ())], [(1, 1, None, b"y", ())]])
    source = LogDirectorySource([tmp_path / "a", tmp_path / "b"])
    (offsets,) = choose_ranges(source, Selection(("t",)))
    assert (offsets.first_offset, offsets.end_offset) == (0, 2)


def test_unreadable_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="no such file or directory"):
        LogDirectorySource([tmp_path / "nowhere"])


def test_times_are_found_by_record_and_not_by_batch(tmp_path: Path) -> None:
    first = [(at, 1000 + at, None, b"v", ()) for at in range(10)]
    second = [(at, 1000 + at, None, b"v", ()) for at in range(10, 20)]
    write_log(tmp_path / "t-0", [first, second])
    source = LogDirectorySource([tmp_path])
    (found,) = choose_ranges(source, Selection(("t",), since_ms=1005))
    assert (found.first_offset, found.end_offset) == (5, 20)
    (late,) = choose_ranges(source, Selection(("t",), since_ms=5000))
    assert late.is_empty
