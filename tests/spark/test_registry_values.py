"""`--value registry`: values written by fastavro, protobuf and json, as typed columns."""

import io
import json
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.spark.support import write_log
from tests.support.kctl import KctlResult, run_kctl
from tests.support.registry import RunningRegistry, running_registry

pytestmark = pytest.mark.timeout(200)

FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal",
                                            "precision": 9, "scale": 2}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "raw", "type": "bytes"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
        {"name": "before", "type": ["null", "State"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}}},
    ],
}  # fmt: skip
SECOND = {
    **FIRST,
    "fields": [
        {"name": "id", "type": "long"},
        *FIRST["fields"][1:],
        {"name": "note", "type": "string", "default": "none"},
    ],
}
ORDER = {
    "id": 1,
    "at": datetime(2026, 1, 31, 12, 0, 0, 123000, UTC),
    "price": Decimal("12.50"),
    "day": date(2026, 1, 31),
    "raw": b"\xff\x00",
    "state": "NEW",
    "before": "OLD",
    "tags": {"a": 1, "b": 2**40},
    "lines": [{"sku": "x"}, {"sku": "y"}],
}
ROW = {**ORDER, "tags": [{"key": "a", "value": 1}, {"key": "b", "value": 2**40}]}


@pytest.fixture
def registry() -> Iterator[RunningRegistry]:
    with running_registry() as running:
        yield running


def registered(registry: RunningRegistry, subject: str, text: str, kind: str = "AVRO") -> int:
    found = registry.state.id_of({"schema": text, "schemaType": kind})
    registry.state.subjects.setdefault(subject, []).append(found)
    return found


def framed(schema_id: int, payload: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + payload


def avro(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return framed(schema_id, out.getvalue())


def export(
    registry: RunningRegistry, directory: Path, values: list[bytes | None], *options: str
) -> KctlResult:
    batches = [[(at, 1000 + at, None, value, ())] for at, value in enumerate(values)]
    write_log(directory / "logs" / "t-0", batches)
    words = ["t", "--from-dir", str(directory / "logs"), "--to", str(directory / "out")]
    words += ["--engine", "local", "--value", "registry", "--registry", registry.url]
    return run_kctl("spark-export", *words, *options, "-o", "json")


def rows(directory: Path) -> dict[int, Any]:
    table = ds.dataset(directory / "out", format="parquet", partitioning="hive").to_table()
    return {row["offset"]: row["value"] for row in table.to_pylist()}


def aside(directory: Path) -> dict[int, str]:
    paths = (directory / "out").rglob("_undecodable/*.parquet")
    tables = [pq.ParquetFile(path).read(["offset", "reason"]) for path in paths]
    return {row["offset"]: row["reason"] for each in tables for row in each.to_pylist()}


def test_avro_values_of_two_schemas_are_one_table(
    registry: RunningRegistry, tmp_path: Path
) -> None:
    first = registered(registry, "t-value", json.dumps(FIRST))
    second = registered(registry, "t-value", json.dumps(SECOND))
    values = [
        avro(first, FIRST, ORDER),
        avro(second, SECOND, {**ORDER, "id": 2**40, "note": "new", "price": None}),
        b"no schema",
        framed(99, b"\x02"),
        None,
        framed(second, b"\x02"),
    ]
    result = export(registry, tmp_path, values)
    assert result.exit_code == 0, result.stderr
    assert (result.json["records"], result.json["undecodable"]) == (3, 3)
    assert rows(tmp_path) == {
        0: {**ROW, "note": "none"},
        1: {**ROW, "id": 2**40, "note": "new", "price": None},
        4: None,
    }
    kept = aside(tmp_path)
    assert sorted(kept) == [2, 3, 5]
    assert "the registry has no schema 99" in kept[3]
    fetched = [each for each in registry.state.requests if "/schemas/ids/" in each]
    assert len(fetched) <= 3 * 2, fetched  # each schema once per process: driver and worker
    verified = run_kctl("spark-export", "verify", str(tmp_path / "out"), "--deep", "-o", "json")
    assert verified.json == []


def test_increments_keep_the_schema_or_evolve(registry: RunningRegistry, tmp_path: Path) -> None:
    first = registered(registry, "t-value", json.dumps(FIRST))
    values: list[bytes | None] = [avro(first, FIRST, ORDER)]
    assert export(registry, tmp_path, values, "--incremental").exit_code == 0
    second = registered(registry, "t-value", json.dumps(SECOND))
    values.append(avro(second, SECOND, {**ORDER, "id": 2, "note": "new"}))
    result = export(registry, tmp_path, values, "--incremental")
    assert result.exit_code == 0, result.stderr
    assert result.json["undecodable"] == 1  # Avro does not resolve a long to an int
    values.append(avro(second, SECOND, {**ORDER, "id": 2**40, "note": "new"}))
    result = export(registry, tmp_path, values, "--incremental", "--schema-evolution", "widen")
    assert result.exit_code == 0, result.stderr
    assert rows(tmp_path) == {
        0: {**ROW, "note": None},
        1: {**ROW, "id": 2, "note": "new"},  # it was set aside, and fits now
        2: {**ROW, "id": 2**40, "note": "new"},
    }
    assert aside(tmp_path) == {}
    words = ["--deep", "--from-dir", str(tmp_path / "logs"), "--registry", registry.url]
    verified = run_kctl("spark-export", "verify", str(tmp_path / "out"), *words, "-o", "json")
    assert verified.json == [], verified.stderr


def test_protobuf_values_are_typed(registry: RunningRegistry, tmp_path: Path) -> None:
    text = (
        'syntax = "proto3"; message Item { string sku = 1; uint64 count = 2; } '
        "message Order { int32 id = 1; repeated Item items = 2; map<string, double> prices = 3; "
        "bytes raw = 4; optional string note = 5; }"
    )
    schema = registered(registry, "t-value", text, "PROTOBUF")
    # Order is the second message (index 1): id 7; items {x, 2**64 - 1}; prices {a: 1.5}; raw ff.
    count = b"\xff" * 9 + b"\x01"
    item = b"\x0a\x01x\x10" + count
    price = b"\x0a\x01a\x11" + struct.pack("<d", 1.5)
    payload = b"\x08\x07\x12" + bytes([len(item)]) + item + b"\x1a" + bytes([len(price)]) + price
    result = export(registry, tmp_path, [framed(schema, b"\x02\x02" + payload + b"\x22\x01\xff")])
    assert result.exit_code == 0, result.stderr
    assert rows(tmp_path) == {
        0: {
            "id": 7,
            "items": [{"sku": "x", "count": Decimal(2**64 - 1)}],
            "prices": [{"key": "a", "value": 1.5}],
            "raw": b"\xff",
            "note": None,
        }
    }


def test_json_schema_values_are_typed(registry: RunningRegistry, tmp_path: Path) -> None:
    schema = registered(registry, "t-value", '{"type": "object"}', "JSON")
    values: list[bytes | None] = [
        framed(schema, b'{"a": 1, "b": {"c": "x"}}'),
        framed(schema, b"["),
    ]
    result = export(registry, tmp_path, values, "--flatten")
    assert result.exit_code == 0, result.stderr
    table = ds.dataset(tmp_path / "out", format="parquet", partitioning="hive").to_table()
    assert table.select(["a", "b"]).to_pylist() == [{"a": 1, "b": {"c": "x"}}]
    assert sorted(aside(tmp_path)) == [1]


def test_what_has_no_columns_is_a_clear_error(registry: RunningRegistry, tmp_path: Path) -> None:
    recursive = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "next", "type": ["null", "Node"]}],
    }
    union = {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["int", "string"]}]}
    for schema, said in (
        (recursive, "Node is recursive"),
        (union, "a union of several types has no column type"),
        ("string", "is not a record with fields"),
    ):
        registered(registry, "t-value", json.dumps(schema))
        refused = export(registry, tmp_path, [framed(1, b"\x00")])
        assert refused.exit_code == 1
        assert said in refused.stderr, refused.stderr
        assert not (tmp_path / "out").exists()
