"""Which records become rows, and how: --where, --sample, times, --flatten, files."""

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from broker.records.record import RecordTuple
from kctl.spark.planning.settings import (
    ContentType,
    ExportFormat,
    PartitionColumn,
    TaskSettings,
    parse_share,
)
from kctl.spark.publishing.export_directory import LocalExportDirectory
from tests.spark.support import export_without_spark, exported, write_log
from tests.support.kctl import Kctl

DAY_MS = 86_400_000


@pytest.fixture
def target(tmp_path: Path) -> LocalExportDirectory:
    return LocalExportDirectory(str(tmp_path / "out"))


def write_records(tmp_path: Path, records: list[RecordTuple], per_batch: int = 50) -> Path:
    batches = [records[at : at + per_batch] for at in range(0, len(records), per_batch)]
    write_log(tmp_path / "logs" / "t-0", batches)
    return tmp_path / "logs"


def export(
    tmp_path: Path, target: LocalExportDirectory, records: list[RecordTuple], **settings: Any
) -> list[dict[str, Any]]:
    logs = write_records(tmp_path, records)
    export_without_spark(logs, target, "t", settings=TaskSettings("", **settings))
    return exported(target.path) if settings.get("export_format") is None else []


def test_regression_until_keeps_records_after_one_with_a_wrong_clock(
    tmp_path: Path, target: LocalExportDirectory
) -> None:
    times = [5 if at == 10 else 1 for at in range(100)]
    records: list[RecordTuple] = [(at, time, None, b"v", ()) for at, time in enumerate(times)]
    rows = export(tmp_path, target, records, until_ms=3)
    assert [row["offset"] for row in rows] == [at for at in range(100) if at != 10]


def test_since_leaves_out_older_records_after_the_first_newer_one(
    tmp_path: Path, target: LocalExportDirectory
) -> None:
    records: list[RecordTuple] = [(at, time, None, b"v", ()) for at, time in enumerate([1, 9, 2])]
    assert [row["offset"] for row in export(tmp_path, target, records, since_ms=2)] == [1, 2]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("offset < 3", [0, 1, 2]),
        ("key = 'k4' OR value.n = 7", [4, 7]),
        ("key LIKE 'k1%'", [1]),
        ("NOT key IN ('k0', 'k1', 'k2') AND offset <= 4", [3, 4]),
        ("value.name IS NULL", [9]),
        ("value.n BETWEEN 2 AND 3", [2, 3]),
        ("value.price > 6.5 AND value.price <> 8", [7, 9]),
        ("timestamp >= '1970-01-01T00:00:01.008'", [8, 9]),
        ("(partition = 0 AND topic = 'u') OR offset = 5", [5]),
    ],
)
def test_where_selects_rows_as_sql_does(
    tmp_path: Path, target: LocalExportDirectory, where: str, kept: list[int]
) -> None:
    records: list[RecordTuple] = []
    for at in range(10):
        name = "null" if at == 9 else f'"x{at}"'
        text = f'{{"n": {at}, "price": {at}.0, "name": {name}}}'
        records.append((at, 1000 + at, b"k%d" % at, text.encode(), ()))
    schema = TaskSettings.parse(
        isolation="read_committed",
        export_format="parquet",
        columns=None,
        partition_by=None,
        key_type="string",
        value_type="json",
        schema_file=_ddl(tmp_path, "n INT, price DOUBLE, name STRING"),
    ).value_schema
    rows = export(
        tmp_path,
        target,
        records,
        key_type=ContentType.STRING,
        value_type=ContentType.JSON,
        value_schema=schema,
        where=where,
    )
    assert [row["offset"] for row in rows] == kept


def _ddl(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "schema.ddl"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("size > 3", "no column size"),
        ("offset >", "'the end' is not a value of int64"),
        ("offset > 'x'", "'x' is not a value of int64"),
        ("offset = 3 )", "expected the end instead of ')'"),
        ("value.a = 1", "no field a in value.a"),
        ("offset # 3", "unexpected '# 3'"),
    ],
)
def test_invalid_condition_is_a_usage_error_before_anything_is_read(
    kctl: Kctl, tmp_path: Path, where: str, said: str
) -> None:
    logs = write_records(tmp_path, [(0, 0, None, b"v", ())])
    words = ["t", "--from-dir", str(logs), "--to", str(tmp_path / "out"), "--engine", "local"]
    result = kctl("spark-export", *words, "--where", where)
    assert result.exit_code == 2, result.stderr
    assert said in result.stderr
    assert not (tmp_path / "out").exists()


def test_sample_is_a_fixed_share_of_the_records(
    tmp_path: Path, target: LocalExportDirectory
) -> None:
    records: list[RecordTuple] = [(at, 0, None, b"v", ()) for at in range(10_000)]
    rows = export(tmp_path, target, records, sample=parse_share("10%"))
    assert 900 < len(rows) < 1100
    again = LocalExportDirectory(str(tmp_path / "again"))
    assert export(tmp_path, again, records, sample=0.1) == rows


def test_flattened_fields_are_columns(kctl: Kctl, tmp_path: Path) -> None:
    values = [b'{"id": 1, "offset": 7, "deep": {"x": 1}}', None, b'{"id": 2, "deep": {"x": null}}']
    logs = write_records(tmp_path, [(at, 0, None, each, ()) for at, each in enumerate(values)])
    words = ["t", "--from-dir", str(logs), "--to", str(tmp_path / "out"), "--engine", "local"]
    result = kctl(
        "spark-export", *words, "--value", "json", "--flatten", "--columns", "offset,value"
    )
    assert result.exit_code == 0, result.stderr
    table = ds.dataset(tmp_path / "out" / "export=00001", format="parquet").to_table()
    assert table.to_pylist() == [
        {"offset": 0, "id": 1, "value_offset": 7, "deep": {"x": 1}},
        {"offset": 1, "id": None, "value_offset": None, "deep": None},
        {"offset": 2, "id": 2, "value_offset": None, "deep": {"x": None}},
    ]


def test_regression_many_dates_do_not_make_many_files(
    tmp_path: Path, target: LocalExportDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kctl.spark.reading.pieces.CHUNK_BYTES", 10_000)
    records: list[RecordTuple] = [
        (at, at % 100 * DAY_MS, None, b"v" * 100, ()) for at in range(5000)
    ]
    export(tmp_path, target, records, partition_by=(PartitionColumn.DATE,))
    files = sorted(target.export_path(1).rglob("*.parquet"))
    assert len(files) == 100
    assert {pq.read_metadata(path).num_row_groups for path in files} == {1}


def test_regression_small_partitions_share_row_groups(
    tmp_path: Path, target: LocalExportDirectory
) -> None:
    for partition in range(20):
        write_log(tmp_path / "logs" / f"t-{partition}", [[(0, 0, None, b"v", ())]])
    export_without_spark(tmp_path / "logs", target, "t")
    (path,) = target.export_path(1).glob("*.parquet")
    metadata = pq.read_metadata(path)
    assert (metadata.num_rows, metadata.num_row_groups) == (20, 1)


def test_file_size_is_kept(tmp_path: Path, target: LocalExportDirectory) -> None:
    import random

    chooser = random.Random(1)  # does not compress
    records: list[RecordTuple] = [(at, 0, None, chooser.randbytes(1000), ()) for at in range(4000)]
    export(tmp_path, target, records, file_bytes=1 << 20)
    sizes = [path.stat().st_size for path in sorted(target.export_path(1).glob("*.parquet"))]
    assert len(sizes) in (3, 4)
    assert all(size < 1.35 * 2**20 for size in sizes)


@pytest.mark.parametrize(
    ("given", "codec"), [("", "ZSTD"), ("none", "UNCOMPRESSED"), ("gzip:9", "GZIP")]
)
def test_compression_of_parquet(
    tmp_path: Path, target: LocalExportDirectory, given: str, codec: str
) -> None:
    export(tmp_path, target, [(0, 0, None, b"v" * 1000, ())], compression=given)
    (path,) = target.export_path(1).glob("*.parquet")
    assert pq.read_metadata(path).row_group(0).column(6).compression == codec


def test_json_lines_are_what_python_writes(tmp_path: Path, target: LocalExportDirectory) -> None:
    values: list[bytes | None] = ['"\\\n\t\x7f\u2028é€😀'.encode(), b"", None, b"plain"]
    headers = ((), (("h", b"\x00\xff"), ("n", None)), (), ())
    records: list[RecordTuple] = [
        (at, time, b"\x00k", values[at], headers[at])
        for at, time in enumerate((0, 1_700_000_000_123, -1, 1_700_000_000_000))
    ]
    settings = {"value_type": ContentType.STRING}
    rows = export(tmp_path, target, records, **settings)
    other = LocalExportDirectory(str(tmp_path / "lines"))
    export(tmp_path, other, records, export_format=ExportFormat.JSONL, **settings)
    (path,) = other.export_path(1).glob("*.jsonl")
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row["value"] for row in found] == [row["value"] for row in rows]
    assert [row["timestamp"] for row in found] == [
        None if row["timestamp"] is None else row["timestamp"].isoformat() for row in rows
    ]
    assert found[1]["headers"] == [{"key": "h", "value": "AP8="}, {"key": "n", "value": None}]
    assert found[0]["headers"] == []
    assert found[0]["key"] == "AGs="


def test_compressed_json_lines_are_gzip_files(tmp_path: Path, target: LocalExportDirectory) -> None:
    import gzip

    records: list[RecordTuple] = [(0, 0, None, b"v", ())]
    export(tmp_path, target, records, export_format=ExportFormat.JSONL, compression="gzip")
    (path,) = target.export_path(1).glob("*.jsonl.gz")
    assert json.loads(gzip.decompress(path.read_bytes()))["offset"] == 0
