"""`kctl spark-export verify` finds removed, duplicated, overlapping and changed exports."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kctl.spark.publishing.export_directory import LocalExportDirectory
from kctl.spark.writing.output import describe_file
from tests.spark.support import LOGS, export_without_spark, write_log
from tests.support.kctl import Kctl


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def grow(logs: Path, count: int) -> None:
    """A partition with this many records."""
    write_log(logs / "t-0", [[(at, 1000 + at, b"k", b"v%d" % at, ())] for at in range(count)])


def run(kctl: Kctl, logs: Path, out: Path, *arguments: str) -> Any:
    words = ["t", "--from-dir", str(logs), "--to", str(out), "--engine", "local", *arguments]
    result = kctl("spark-export", *words, "-o", "json")
    assert result.exit_code == 0, result.stderr
    return result.json


def problems(kctl: Kctl, out: Path, *arguments: str) -> list[tuple[int, str, str]]:
    result = kctl("spark-export", "verify", str(out), *arguments, "-o", "json")
    assert result.exit_code == (3 if result.json else 0), result.stderr
    return [(each["export"], each["what"], each["problem"]) for each in result.json]


@pytest.fixture
def three(kctl: Kctl, logs: Path, out: Path) -> Path:
    """Three incremental exports of ten records each."""
    for count in (10, 20, 30):
        grow(logs, count)
        run(kctl, logs, out, "--incremental")
    return out


def test_regression_removed_increment_is_found(kctl: Kctl, three: Path) -> None:
    assert problems(kctl, three) == []
    shutil.rmtree(three / "export=00002")
    missing = "offsets 10 to 19 are in no export: was one removed?"
    assert problems(kctl, three) == [(3, "t-0", missing)]


def test_old_exports_may_be_removed(kctl: Kctl, three: Path) -> None:
    shutil.rmtree(three / "export=00001")
    assert problems(kctl, three) == []


def test_regression_offsets_exported_twice_are_found(kctl: Kctl, logs: Path, out: Path) -> None:
    grow(logs, 10)
    run(kctl, logs, out)
    run(kctl, logs, out, "--append", "--last", "4")
    assert problems(kctl, out) == [(2, "t-0", "offsets 6 to 9 are also in export 1")]


@pytest.mark.parametrize("text", ["", "{", "{}", '{"files": [], "partitions": [{}]}'])
def test_regression_unreadable_manifest_is_a_finding_and_the_others_are_verified(
    kctl: Kctl, three: Path, text: str
) -> None:
    (three / "export=00001" / "_manifest.json").write_text(text)
    next((three / "export=00003").glob("*.parquet")).unlink()
    found = problems(kctl, three)
    assert [(number, what) for number, what, _ in found] == [
        (1, "_manifest.json"),
        (3, "part-00000-0000.parquet"),
    ]


def test_regression_hidden_extra_file_is_found(kctl: Kctl, three: Path) -> None:
    (three / "export=00002" / ".extra.parquet").touch()
    assert problems(kctl, three) == [(2, ".extra.parquet", "is not in the manifest")]


def forge(export: Path, name: str) -> None:
    """Replace a value in a file, and adapt its size and checksum in the manifest."""
    (path,) = export.glob("**/*.parquet")
    table = pq.read_table(path, partitioning=None)
    values = table.column(name).to_pylist()
    values[3] = b"forged"
    kind = table.schema.field(name).type
    at = table.column_names.index(name)
    pq.write_table(table.set_column(at, name, pa.array(values, kind)), path)
    manifest = json.loads((export / "_manifest.json").read_text())
    manifest["files"] = [asdict(describe_file(path, str(path.relative_to(export))))]
    (export / "_manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("name", "partition_by"),
    [("value", ""), ("key", "date"), ("value", "topic,partition")],
)
def test_regression_changed_values_are_found_by_a_deep_verification(
    kctl: Kctl, logs: Path, out: Path, name: str, partition_by: str
) -> None:
    grow(logs, 30)
    by = ["--partition-by", partition_by] if partition_by else []
    run(kctl, logs, out, *by)
    source = ["--from-dir", str(logs)]
    assert problems(kctl, out, "--deep", *source) == []
    forge(out / "export=00001", name)
    assert problems(kctl, out, *source) == []
    assert problems(kctl, out, "--deep") == [(1, "t-0", f"values were changed in {name}")]


def test_deep_verification_compares_the_checksums_with_the_source(
    kctl: Kctl, logs: Path, out: Path
) -> None:
    grow(logs, 10)
    run(kctl, logs, out)
    records = [[(at, 1000 + at, b"k", b"w%d" % at, ())] for at in range(10)]
    write_log(logs / "t-0", records)
    source = ["--from-dir", str(logs)]
    assert problems(kctl, out, *source) == []
    said = "values were changed in value, compared with the source"
    assert problems(kctl, out, "--deep", *source) == [(1, "t-0", said)]


def test_deep_verification_of_every_kind_of_log_finds_nothing(kctl: Kctl, out: Path) -> None:
    topics = ("txn", "compacted", "codec-.*", "rolled")
    export_without_spark(LOGS, LocalExportDirectory(str(out)), *topics, task_bytes=20_000)
    assert problems(kctl, out, "--deep", "--from-dir", str(LOGS)) == []


@pytest.mark.parametrize("export_format", ["orc", "jsonl", "csv"])
def test_deep_verification_of_other_formats(
    kctl: Kctl, logs: Path, out: Path, export_format: str
) -> None:
    grow(logs, 10)
    run(kctl, logs, out, "--format", export_format)
    assert problems(kctl, out, "--deep", "--from-dir", str(logs)) == []


def test_filtered_export_is_compared_with_the_rows_that_it_selected(
    kctl: Kctl, logs: Path, out: Path
) -> None:
    grow(logs, 30)
    found = run(kctl, logs, out, "--where", "offset >= 5", "--until", "1970-01-01T00:00:01.020")
    assert found["records"] == 15
    assert problems(kctl, out, "--from-dir", str(logs)) == []
    assert problems(kctl, out, "--deep", "--from-dir", str(logs)) == []
