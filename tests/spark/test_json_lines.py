"""JSON lines are those that Python's json writes, for every type a column can have."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kctl.spark.writing.json_lines import json_lines

Typed = tuple[pa.DataType, st.SearchStrategy[Any]]

_FIRST = datetime(1, 1, 2)
LEAVES: list[Typed] = [
    (pa.string(), st.text()),
    (pa.binary(), st.binary(max_size=5)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    (pa.bool_(), st.booleans()),
    (pa.timestamp("us", tz="UTC"), st.datetimes(min_value=_FIRST, timezones=st.just(UTC))),
    (pa.timestamp("us"), st.datetimes(min_value=_FIRST)),
    (pa.date32(), st.dates()),
]


def _list_of(inner: Typed) -> Typed:
    return pa.list_(inner[0]), st.lists(inner[1] | st.none(), max_size=3)


def _struct_of(fields: list[Typed]) -> Typed:
    named = dict(zip(('a"', "b€", "c"), fields, strict=False))
    kind = pa.struct([(name, field) for name, (field, _) in named.items()])
    return kind, st.fixed_dictionaries({n: values | st.none() for n, (_, values) in named.items()})


def _nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return inner.map(_list_of) | st.lists(inner, max_size=3).map(_struct_of)


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value.isoformat()


@given(st.recursive(st.sampled_from(LEAVES), _nested, max_leaves=5), st.data())
def test_lines_are_those_of_python(typed: Typed, data: st.DataObject) -> None:
    kind, values = typed
    rows = data.draw(st.lists(values | st.none(), min_size=1, max_size=6))
    # A slice: the buffers of its columns begin before it.
    start = data.draw(st.integers(0, len(rows) - 1))
    columns = {"value": pa.array(rows, kind), "offset": pa.array(range(len(rows)), pa.int64())}
    table = pa.table(columns).slice(start)
    wanted = [json.dumps(row, ensure_ascii=False, default=_plain) for row in table.to_pylist()]
    assert json_lines(table).decode() == "".join(f"{line}\n" for line in wanted)


def test_regression_microseconds_of_a_timestamp_are_written() -> None:
    times = [1_700_000_000_123_456, 1_700_000_000_000_000, 1_700_000_000_120_000]
    column = pa.array(times, pa.timestamp("us", tz="UTC"))
    found = [json.loads(line)["at"] for line in json_lines(pa.table({"at": column})).splitlines()]
    assert found == [
        "2023-11-14T22:13:20.123456+00:00",
        "2023-11-14T22:13:20+00:00",
        "2023-11-14T22:13:20.120000+00:00",
    ]
