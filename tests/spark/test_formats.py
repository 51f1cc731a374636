"""File formats, directories and content types, without Spark."""

import csv
import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from broker.records.record import RecordTuple
from kctl.cli.errors import CliError
from kctl.spark.decoding.ddl import parse_ddl
from kctl.spark.decoding.schema import decode_struct, encode_struct, infer_struct
from kctl.spark.driver import infer_schema
from kctl.spark.planning.selection import Selection, choose_ranges
from kctl.spark.planning.settings import ContentType, ExportFormat, PartitionColumn, TaskSettings
from kctl.spark.publishing.export_directory import LocalExportDirectory
from kctl.spark.reading.log_directory import LogDirectorySource
from tests.spark.support import export_without_spark, exported, write_log

DAY_MS = 86_400_000
RECORDS: list[RecordTuple] = [
    (0, 0, b"k", b'{"id": 1, "name": "a", "tags": ["x"]}', (("h", b"\x00"), ("n", None))),
    (1, DAY_MS, None, b'{"id": 2, "more": true}', ()),
    (2, DAY_MS + 3_600_000, b"\xff", b"not json", ()),
    (3, DAY_MS + 7_200_000, b"k", None, ()),
    (4, DAY_MS + 7_200_000, b"k", b'{"id": "no number"}', ()),
]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_log(tmp_path / "logs" / "t-0", [RECORDS[:3], RECORDS[3:]])
    return tmp_path / "logs"


def export(log_dir: Path, **settings: Any) -> LocalExportDirectory:
    target = LocalExportDirectory(str(log_dir.parent / "out"))
    export_without_spark(log_dir, target, "t", settings=TaskSettings("", **settings))
    return target


def only_file(target: LocalExportDirectory, suffix: str) -> Path:
    (path,) = target.export_path(1).glob(f"*.{suffix}")
    return path


def test_json_lines_have_bytes_in_base64(log_dir: Path) -> None:
    path = only_file(export(log_dir, export_format=ExportFormat.JSONL), "jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0]["value"] == b64encode(RECORDS[0][3] or b"").decode()
    assert rows[0]["headers"] == [{"key": "h", "value": "AA=="}, {"key": "n", "value": None}]
    assert (rows[1]["key"], rows[3]["value"]) == (None, None)
    assert rows[1]["timestamp"] == "1970-01-02T00:00:00+00:00"


def test_csv_has_a_header_line_and_record_headers_as_json(log_dir: Path) -> None:
    path = only_file(export(log_dir, export_format=ExportFormat.CSV), "csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["offset"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert json.loads(rows[0]["headers"])[0] == {"key": "h", "value": "AA=="}
    assert rows[2]["key"] == "/w=="


def test_orc_has_the_same_rows_as_parquet(log_dir: Path, tmp_path: Path) -> None:
    rows = orc.read_table(only_file(export(log_dir, export_format=ExportFormat.ORC), "orc"))
    found = [(row["offset"], row["key"], row["value"]) for row in rows.to_pylist()]
    assert found == [(offset, key, value) for offset, _, key, value, _ in RECORDS]


def test_only_chosen_columns_are_written(log_dir: Path) -> None:
    target = export(log_dir, columns=("offset", "leader_epoch"))
    assert pq.read_schema(only_file(target, "parquet")).names == ["offset", "leader_epoch"]


def test_rows_go_to_directories_by_topic_partition_and_date(log_dir: Path) -> None:
    by = (PartitionColumn.TOPIC, PartitionColumn.PARTITION, PartitionColumn.DATE)
    target = export(log_dir, partition_by=by)
    found = {
        str(path.parent.relative_to(target.export_path(1))): pq.read_metadata(path).num_rows
        for path in target.export_path(1).rglob("*.parquet")
    }
    assert found == {
        "topic=t/partition=0/date=1970-01-01": 1,
        "topic=t/partition=0/date=1970-01-02": 4,
    }
    assert [row["offset"] for row in exported(target.path)] == [0, 1, 2, 3, 4]


def test_hours_are_in_utc(log_dir: Path) -> None:
    target = export(log_dir, partition_by=(PartitionColumn.HOUR,))
    assert {path.name for path in target.export_path(1).glob("hour=*")} == {
        "hour=00",
        "hour=01",
        "hour=02",
    }


def test_full_file_is_followed_by_a_new_one(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.spark.reading.pieces.CHUNK_BYTES", 1)
    target = export(log_dir, file_bytes=1)
    assert len(list(target.export_path(1).glob("*.parquet"))) == 5  # one row each
    assert [row["offset"] for row in exported(target.path)] == [0, 1, 2, 3, 4]


def test_more_directories_than_open_files(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.spark.writing.output.MAX_OPEN_FILES", 1)
    monkeypatch.setattr("kctl.spark.reading.pieces.CHUNK_BYTES", 1)
    target = export(log_dir, partition_by=(PartitionColumn.HOUR,))
    assert [row["offset"] for row in exported(target.path)] == [0, 1, 2, 3, 4]


class TestUndecodable:
    def aside(self, target: LocalExportDirectory) -> list[dict[str, Any]]:
        (path,) = (target.export_path(1) / "_undecodable").glob("*.parquet")
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows

    def test_key_that_is_not_utf_8_is_kept_aside_unchanged(self, log_dir: Path) -> None:
        target = export(log_dir, key_type=ContentType.STRING, value_type=ContentType.STRING)
        assert [row["key"] for row in exported(target.path)] == ["k", None, "k", "k"]
        (row,) = self.aside(target)
        assert (row["offset"], row["key"], row["value"]) == (2, b"\xff", b"not json")
        (partition,) = target.manifest(1)["partitions"]
        assert (partition["records"], partition["undecodable"]) == (4, 1)

    def test_value_that_is_not_json_is_kept_aside(self, log_dir: Path) -> None:
        target = export(log_dir, value_type=ContentType.JSON)
        values = [row["value"] for row in exported(target.path)]
        assert [value and json.loads(value)["id"] for value in values] == [1, 2, None, "no number"]
        assert [row["offset"] for row in self.aside(target)] == [2]

    def test_json_that_does_not_fit_the_schema_is_kept_aside(self, log_dir: Path) -> None:
        schema = encode_struct(parse_ddl("id INT, name STRING, tags ARRAY<STRING>"))
        target = export(log_dir, value_type=ContentType.JSON, value_schema=schema)
        assert [row["value"] for row in exported(target.path)] == [
            {"id": 1, "name": "a", "tags": ["x"]},
            {"id": 2, "name": None, "tags": None},
            None,
        ]
        assert [row["offset"] for row in self.aside(target)] == [2, 4]


def test_struct_is_inferred_from_json_objects() -> None:
    values = [b'{"a": 1, "b": null}', None, b"no json", b"[1]", b'{"a": 2, "c": [{"d": 0.5}]}']
    kind = infer_struct(values)
    assert str(kind) == ("struct<a: int64, b: string, c: list<item: struct<d: double>>>")
    assert decode_struct(encode_struct(kind)) == kind


@pytest.mark.parametrize("values", [[], [b"x"], [b'{"a": 1}', b'{"a": "x"}'], [b'{"a": [1, {}]}']])
def test_no_struct_is_inferred_if_types_conflict(values: list[bytes]) -> None:
    assert infer_struct(values) is None


def test_schema_of_json_values_is_taken_from_a_sample(log_dir: Path) -> None:
    source = LogDirectorySource([log_dir])
    pieces = [
        p for each in choose_ranges(source, Selection(("t",))) for p in source.pieces(each, 9)
    ]
    assert infer_schema(pieces, TaskSettings("")) == ""  # an id is a number and a text
    first = [replace(pieces[0], end_offset=2)]
    assert str(decode_struct(infer_schema(first, TaskSettings("")))) == (
        "struct<id: int64, name: string, tags: list<item: string>, more: bool>"
    )


def test_ddl_with_nested_types_is_parsed() -> None:
    kind = parse_ddl("a BIGINT, `b` STRUCT<c: DOUBLE, d: ARRAY<INT>>, e BOOLEAN")
    assert str(kind) == ("struct<a: int64, b: struct<c: double, d: list<item: int32>>, e: bool>")


def test_ddl_has_the_types_and_names_of_spark() -> None:
    kind = parse_ddl(
        "`my col` DECIMAL(10,2) COMMENT 'it\\'s, here', d DATE, t timestamp, s SMALLINT, "
        "y TINYINT, b BINARY, n NUMERIC, l STRUCT<x ARRAY<STRUCT<y: DEC(3)>>>"
    )
    assert str(kind) == (
        "struct<my col: decimal128(10, 2), d: date32[day], t: timestamp[us, tz=UTC], s: int16, "
        "y: int8, b: binary, n: decimal128(10, 0), "
        "l: struct<x: list<item: struct<y: decimal128(3, 0)>>>>"
    )


@pytest.mark.parametrize(
    "ddl",
    [
        *("a", "a NUMBER", "a MAP<INT, INT>", "id INT, id INT", "a INT NOT NULL", "a INT b INT"),
        *("a DECIMAL(2,3)", "a DECIMAL(39)", "a DECIMAL(x)", "a ARRAY<INT", "a STRUCT<b INT>>"),
        *(", a INT", "a INT COMMENT b", "a-b INT", "`a INT"),
    ],
)
def test_invalid_ddl_is_refused(ddl: str) -> None:
    with pytest.raises(CliError, match="is not valid"):
        parse_ddl(ddl)


def test_timestamps_are_those_of_the_records(log_dir: Path) -> None:
    rows = exported(export(log_dir).path)
    assert rows[1]["timestamp"] == datetime(1970, 1, 2, tzinfo=UTC)
