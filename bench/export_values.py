"""JSON values to columns, and rows to JSON lines: `kctl spark-export` compared with Python's json.

The peer is what spark-export did before: `json.loads` and pyarrow's conversion for each value,
`json.dumps` for each row. The results are compared before they are measured, in CPU time.
"""

import base64
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from bench.report import Comparison
from kctl.spark.decoding.columns import HEADERS_TYPE
from kctl.spark.decoding.json_values import to_structs
from kctl.spark.writing.json_lines import json_lines

RECORDS = 20_000
ROUNDS = 7
GOAL = 2.0
PEER = "Python's json"
_KIND = pa.struct(
    [
        ("id", pa.int64()),
        ("user", pa.string()),
        ("amount", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("address", pa.struct([("city", pa.string()), ("zip", pa.int64())])),
        ("note", pa.string()),
    ]
)


def run() -> Iterator[Comparison]:
    """Records per second, for bytes, text and decoded values, with and without headers."""
    values = _values()
    structs = _decoded(values)
    assert structs.equals(_decoded_one_by_one(values))
    yield _compare("JSON decoding", lambda: _decoded(values), lambda: _decoded_one_by_one(values))
    kinds = {"bytes": values, "text": values.cast(pa.string()), "structs": structs}
    for headers in (0, 3):
        for kind, column in kinds.items():
            yield _lines(f"JSON lines, values as {kind}, {headers} headers", column, headers)


def _compare(what: str, *actions: Callable[[], object]) -> Comparison:
    """Ours and theirs; the best of some rounds, in which they take turns."""
    best_s = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        for number, action in enumerate(actions):
            began_s = time.process_time()
            action()
            best_s[number] = min(best_s[number], time.process_time() - began_s)
    ours, theirs = (RECORDS / each / 1000 for each in best_s)
    return Comparison(what, ours, theirs, PEER, "thousand/s", GOAL, more_is_better=True)


def _lines(what: str, values: pa.Array, num_headers: int) -> Comparison:
    table = _table(values, num_headers)
    assert json_lines(table) == _lines_one_by_one(table)
    return _compare(what, lambda: json_lines(table), lambda: _lines_one_by_one(table))


def _values() -> pa.Array:
    chooser = random.Random(1)
    documents = (
        {
            "id": number,
            "user": f"user-{number % 65_536}",
            "amount": round(chooser.random() * 1000, 2),
            "tags": ["new", "gift"],
            "address": {"city": "Köln", "zip": number % 99_999},
            "note": "x" * chooser.randint(20, 200),
        }
        for number in range(RECORDS)
    )
    return pa.array([json.dumps(each).encode() for each in documents], pa.binary())


def _decoded(values: pa.Array) -> pa.Array:
    structs, reasons = to_structs(values, _KIND, keep_unknown=True)
    assert reasons is None
    return structs


def _decoded_one_by_one(values: pa.Array) -> pa.Array:
    found = (json.loads(value) for value in values.to_pylist())
    return pa.array([each if isinstance(each, dict) else None for each in found], _KIND)


def _table(values: pa.Array, num_headers: int) -> pa.Table:
    headers = [{"key": f"h{number}", "value": b"1"} for number in range(num_headers)]
    times = range(1_700_000_000_000, 1_700_000_000_000 + RECORDS)
    return pa.table(
        {
            "topic": pa.array(["orders"] * RECORDS),
            "partition": pa.array([0] * RECORDS, pa.int32()),
            "offset": pa.array(range(RECORDS), pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "timestamp_type": pa.array(["CreateTime"] * RECORDS),
            "key": pa.array([b"user-%d" % (number % 65_536) for number in range(RECORDS)]),
            "value": values,
            "headers": pa.array([headers] * RECORDS, HEADERS_TYPE),
        }
    )


def _lines_one_by_one(table: pa.Table) -> bytes:
    rows = table.to_pylist()
    return b"".join(
        json.dumps(row, ensure_ascii=False, default=_plain).encode() + b"\n" for row in rows
    )


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value.isoformat()
