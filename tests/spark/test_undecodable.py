"""No value is changed silently: what does not fit is set aside with its offset and the reason."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from broker.records.record import RecordTuple
from kctl.cli.errors import CliError
from kctl.spark.data_source import PiecesToRead, read_batches
from kctl.spark.decoding.ddl import parse_ddl
from kctl.spark.decoding.json_values import to_structs
from kctl.spark.decoding.schema import decode_struct, encode_struct, infer_struct
from kctl.spark.driver import infer_schema
from kctl.spark.planning.selection import Selection, choose_ranges
from kctl.spark.planning.settings import ContentType, ExportFormat, PartitionColumn, TaskSettings
from kctl.spark.publishing.export_directory import LocalExportDirectory
from kctl.spark.reading.log_directory import LogDirectorySource
from kctl.spark.reading_back import stored_checksums
from tests.spark.support import export_without_spark, exported, write_log

MICROSECONDS = 1_700_000_000_000_000
"""A timestamp in the wrong unit: year 55,840."""


def write_values(directory: Path, values: Sequence[bytes], times: Sequence[int] = ()) -> None:
    stamps = [*times, *[0] * (len(values) - len(times))]
    records: list[RecordTuple] = [
        (offset, time, None, value, ())
        for offset, (time, value) in enumerate(zip(stamps, values, strict=True))
    ]
    write_log(directory / "t-0", [records])


def export(
    tmp_path: Path, *values: bytes, times: Sequence[int] = (), **settings: Any
) -> LocalExportDirectory:
    write_values(tmp_path / "logs", values, times)
    target = LocalExportDirectory(str(tmp_path / "out"))
    export_without_spark(tmp_path / "logs", target, "t", settings=TaskSettings("", **settings))
    return target


def inferred(*values: bytes) -> dict[str, Any]:
    """The settings of a run that has seen these values in its sample."""
    kind = infer_struct(values)
    assert kind is not None
    return {
        "value_type": ContentType.JSON,
        "value_schema": encode_struct(kind),
        "is_schema_inferred": True,
    }


def given_schema(ddl: str) -> dict[str, Any]:
    return {"value_type": ContentType.JSON, "value_schema": encode_struct(parse_ddl(ddl))}


def kept_aside(target: LocalExportDirectory) -> dict[int, str]:
    """Offset and reason of the records set aside."""
    paths = (target.export_path(1) / "_undecodable").glob("*.parquet")
    names = ["topic", "partition", "offset", "reason"]
    rows = [row for path in paths for row in pq.read_table(path, columns=names).to_pylist()]
    assert {(row["topic"], row["partition"]) for row in rows} <= {("t", 0)}
    assert sum(p["undecodable"] for p in target.manifest(1)["partitions"]) == len(rows)
    return {row["offset"]: row["reason"] for row in rows}


class TestJsonValues:
    def test_regression_fraction_does_not_fit_a_column_of_integers(self, tmp_path: Path) -> None:
        values = [b'{"price": 10}', b'{"price": 10.5}', b'{"price": 10.0}', b'{"price": 11}']
        target = export(tmp_path, *values, **inferred(values[0]))
        assert [row["value"]["price"] for row in exported(target.path)] == [10, 10, 11]
        assert kept_aside(target) == {1: "value: field price: 10.5 does not fit int64"}

    def test_regression_number_out_of_range_does_not_become_infinite(self, tmp_path: Path) -> None:
        values = [b'{"a": 1e300}', b'{"b": 3.7}', b'{"c": 9007199254740993}', b'{"c": 1e999}']
        values += [b'{"a": 0.5, "b": 1, "c": 1e300}', b'{"b": true}', b'{"c": NaN}']
        target = export(tmp_path, *values, **given_schema("a FLOAT, b INT, c DOUBLE"))
        assert [row["value"] for row in exported(target.path)] == [{"a": 0.5, "b": 1, "c": 1e300}]
        assert kept_aside(target) == {
            0: "value: field a: 1e+300 does not fit float",
            1: "value: field b: 3.7 does not fit int32",
            2: "value: field c: 9007199254740993 does not fit double",
            3: "value: field c: Infinity does not fit double",
            5: "value: field b: true does not fit int32",
            6: "value: not JSON: NaN is not JSON",
        }

    def test_regression_field_absent_from_the_sample_is_kept_aside(self, tmp_path: Path) -> None:
        values = [b'{"id": 1}', b'{"id": 2, "email": "a@b"}', b'{"id": 3}']
        target = export(tmp_path, *values, **inferred(values[0]))
        assert [row["value"]["id"] for row in exported(target.path)] == [1, 3]
        assert kept_aside(target) == {1: "value: field email is not in the schema"}

    def test_field_absent_from_a_given_schema_is_left_out(self, tmp_path: Path) -> None:
        target = export(tmp_path, b'{"id": 1, "email": "a@b"}', **given_schema("id INT"))
        assert [row["value"] for row in exported(target.path)] == [{"id": 1}]
        assert kept_aside(target) == {}

    def test_record_is_named_also_if_only_the_value_is_exported(self, tmp_path: Path) -> None:
        target = export(tmp_path, b"\xff", columns=("value",), value_type=ContentType.STRING)
        assert kept_aside(target) == {0: "value: not UTF-8"}

    def test_regression_sample_is_taken_from_the_whole_chunk(self, tmp_path: Path) -> None:
        write_values(tmp_path, [b'{"id": 1}'] * 1500 + [b'{"id": 1, "email": "a@b"}'] * 500)
        source = LogDirectorySource([tmp_path])
        (offsets,) = choose_ranges(source, Selection(("t",)))
        schema = infer_schema(list(source.pieces(offsets, 1 << 30)), TaskSettings(""))
        assert str(decode_struct(schema)) == "struct<id: int64, email: string>"


class TestTypesThatJsonDoesNotHave:
    DDL = "d DATE, t TIMESTAMP, p DECIMAL(5, 2), b BINARY, l ARRAY<STRUCT<p: DECIMAL(3)>>"

    @pytest.mark.parametrize("export_format", [ExportFormat.PARQUET, ExportFormat.ORC])
    def test_values_are_exact_or_kept_aside(
        self, tmp_path: Path, export_format: ExportFormat
    ) -> None:
        good = [
            b'{"d": "2026-01-31", "t": "2026-01-31T12:00:00.123456+02:00", "p": 123.45}',
            b'{"t": "2026-01-31 12:00", "p": "0.10", "b": "/w==", "l": [{"p": 999}, {"p": null}]}',
            b'{"p": 0.1e1, "d": null}',
            b'{"p": -999.99}',
        ]
        bad = [b'{"d": "31.1.2026"}', b'{"d": 1}', b'{"t": "2026-01-31T12:00:00.1234567"}']
        bad += [b'{"p": 1.234}', b'{"p": 1000}', b'{"p": "x"}', b'{"p": true}', b'{"b": "?"}']
        bad += [b'{"l": [{"p": 1000}]}', b'{"p": 123.4500000000000000000000001}']
        target = export(
            tmp_path, *good, *bad, export_format=export_format, **given_schema(self.DDL)
        )
        rows = ds.dataset(target.export_path(1), format=export_format.value).to_table()
        values = [row["value"] for row in rows.sort_by("offset").to_pylist()]
        zoned = [{**row, "t": row["t"] and row["t"].replace(tzinfo=UTC)} for row in values]
        empty = {"d": None, "t": None, "p": None, "b": None, "l": None}
        assert zoned == [
            {
                **empty,
                "d": date(2026, 1, 31),
                "t": datetime(2026, 1, 31, 10, 0, 0, 123456, UTC),
                "p": Decimal("123.45"),
            },
            {
                **empty,
                "t": datetime(2026, 1, 31, 12, tzinfo=UTC),
                "p": Decimal("0.10"),
                "b": b"\xff",
                "l": [{"p": Decimal(999)}, {"p": None}],
            },
            {**empty, "p": Decimal("1.00")},
            {**empty, "p": Decimal("-999.99")},
        ]
        assert sorted(kept_aside(target)) == list(range(len(good), len(good) + len(bad)))
        found = stored_checksums(
            target.export_path(1),
            TopicPartition("t", 0),
            TaskSettings.from_json({"staging": "", **target.manifest(1)["settings"]}),
        )
        assert found == target.manifest(1)["partitions"][0]["checksums"]


DEEP = b'{"id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
SURROGATE = rb'{"id": 2, "s": "\ud800"}'


class TestPoisonRecords:
    def test_regression_deep_nesting_and_lone_surrogates_are_kept_aside(
        self, tmp_path: Path
    ) -> None:
        good = b'{"id": 1, "s": "x"}'
        settings = inferred(good, DEEP, SURROGATE)
        target = export(tmp_path, good, DEEP, SURROGATE, good, **settings)
        assert [row["offset"] for row in exported(target.path)] == [0, 3]
        assert kept_aside(target) == {
            1: "value: nested too deeply",
            2: 'value: field s: "\\ud800" does not fit string',
        }

    def test_regression_deep_nesting_in_json_text_is_kept_aside(self, tmp_path: Path) -> None:
        target = export(tmp_path, b"[1]", DEEP, value_type=ContentType.JSON)
        assert [row["value"] for row in exported(target.path)] == ["[1]"]
        assert kept_aside(target) == {1: "value: nested too deeply"}

    @pytest.mark.parametrize(
        "export_format", [ExportFormat.JSONL, ExportFormat.CSV, ExportFormat.ORC]
    )
    def test_regression_timestamp_beyond_year_9999_is_kept_aside_where_files_cannot_hold_it(
        self, tmp_path: Path, export_format: ExportFormat
    ) -> None:
        target = export(tmp_path, b"a", b"b", times=[MICROSECONDS], export_format=export_format)
        assert kept_aside(target) == {0: f"timestamp {MICROSECONDS} out of range"}
        assert target.manifest(1)["partitions"][0]["records"] == 1

    def test_regression_timestamp_beyond_year_9999_makes_no_directory(self, tmp_path: Path) -> None:
        by_date = (PartitionColumn.DATE,)
        target = export(tmp_path, b"a", b"b", times=[MICROSECONDS], partition_by=by_date)
        assert [path.name for path in target.export_path(1).glob("date=*")] == ["date=1970-01-01"]
        assert list(kept_aside(target)) == [0]

    def test_parquet_holds_timestamps_beyond_year_9999(self, tmp_path: Path) -> None:
        target = export(tmp_path, b"a", b"b", times=[MICROSECONDS, 2**62])
        (path,) = target.export_path(1).glob("*.parquet")
        assert pq.read_table(path).column("timestamp").cast("int64").to_pylist() == [MICROSECONDS]
        assert kept_aside(target) == {1: f"timestamp {2**62} out of range"}

    def test_regression_data_frame_names_the_record_whose_timestamp_does_not_fit(
        self, tmp_path: Path
    ) -> None:
        write_values(tmp_path, [b"a", b"b"], [0, 2**62])
        source = LogDirectorySource([tmp_path])
        (offsets,) = choose_ranges(source, Selection(("t",)))
        (piece,) = source.pieces(offsets, 1 << 30)
        with pytest.raises(CliError, match=f"t-0 offset 1: timestamp {2**62} does not fit"):
            list(read_batches(PiecesToRead((piece,)), TaskSettings("")))


# --- the fast path and the full path -------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=5,
)
SCHEMAS = [
    "a BIGINT, b DOUBLE, c STRING",
    "a INT, b FLOAT, c BOOLEAN",
    "a ARRAY<BIGINT>, b STRUCT<a: DOUBLE, b: STRING>",
]
NOT_ONE_OBJECT = [b"", b"{", b"}{", b'{"a":1}{"a":2}', b'{"a":{}', b'{"a":"}', b"null"]


@given(
    values=st.lists(
        st.dictionaries(st.sampled_from("abc"), JSON_VALUES, max_size=3).map(
            lambda value: json.dumps(value).encode()
        )
        | st.sampled_from(NOT_ONE_OBJECT)
        | st.none(),
        min_size=1,
        max_size=6,
    ),
    ddl=st.sampled_from(SCHEMAS),
    keep_unknown=st.booleans(),
)
@hypothesis.settings(max_examples=400, deadline=None)
def test_values_decoded_as_a_chunk_are_those_decoded_one_by_one(
    values: list[bytes | None], ddl: str, keep_unknown: bool
) -> None:
    kind = parse_ddl(ddl)
    together, reasons = to_structs(pa.array(values, pa.binary()), kind, keep_unknown=keep_unknown)
    for index, value in enumerate(values):
        # A value that is not an object makes the fast path impossible.
        pair = pa.array([b"[]", value], pa.binary())
        alone, alone_reasons = to_structs(pair, kind, keep_unknown=keep_unknown)
        assert alone_reasons is not None
        assert together[index].as_py() == alone[1].as_py()
        reason = None if reasons is None else reasons[index].as_py()
        assert reason == alone_reasons[1].as_py()
        if alone[1].is_valid:
            assert_same(alone[1].as_py(), json.loads(value or b""), kind)


def assert_same(found: Any, written: Any, kind: pa.DataType) -> None:
    """Every field of the schema has the value that was written."""
    if found is None or written is None:
        assert found is written
    elif pa.types.is_struct(kind):
        for field in kind:
            assert_same(found[field.name], written.get(field.name), field.type)
    elif pa.types.is_list(kind):
        assert len(found) == len(written)
        for each, other in zip(found, written, strict=True):
            assert_same(each, other, kind.value_type)
    elif pa.types.is_float32(kind):
        assert found == pytest.approx(written, rel=1e-6, abs=1e-38)
    else:
        assert found == written


def test_plain_values_are_decoded_by_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.spark.decoding.json_values.misfit", None)
    values = [b'{"a": 1, "b": {"c": [0.5]}}', None, b' {"b": null}\n']
    kind = infer_struct([values[0]])
    assert kind is not None
    structs, reasons = to_structs(pa.array(values, pa.binary()), kind, keep_unknown=True)
    assert reasons is None
    assert structs.to_pylist() == [{"a": 1, "b": {"c": [0.5]}}, None, {"a": None, "b": None}]
