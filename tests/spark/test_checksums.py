"""Checksums of columns do not depend on how rows are split, and depend on every value."""

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kctl.spark.writing.checksums import column_checksums, joined, table_streams

SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("value", pa.binary()),
        ("flag", pa.bool_()),
        ("price", pa.float64()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("money", pa.decimal128(12, 2)),
    ]
)
HEADERS = st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=3), "value": st.none() | st.binary(max_size=3)}),
    max_size=3,
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "offset": st.integers(0, 2**40),
            "timestamp": st.none() | st.integers(-1, 2**40),
            "value": st.none() | st.binary(max_size=9),
            "flag": st.none() | st.booleans(),
            "price": st.none() | st.floats(allow_nan=False),
            "headers": st.none() | HEADERS,
            "money": st.none() | st.decimals(-999, 999, places=2),
        }
    ),
    max_size=12,
)


@given(ROWS, st.lists(st.integers(0, 12), max_size=3))
def test_checksums_of_any_split_are_those_of_the_whole(
    rows: list[dict[str, object]], cuts: list[int]
) -> None:
    whole = pa.Table.from_pylist(rows, SCHEMA)
    wanted = column_checksums(table_streams(whole))
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [whole.slice(a, b - a) for a, b in itertools.pairwise(bounds)]
    apart = table_streams(parts[0])
    for part in parts[1:]:
        apart = joined(apart, table_streams(part))
    assert column_checksums(apart) == wanted
    at_once = table_streams(parts[0])
    for part in parts[1:]:
        at_once = table_streams(part, at_once)
    assert column_checksums(at_once) == wanted


@given(ROWS.filter(bool), st.data())
def test_changed_value_changes_the_checksum_of_its_column_alone(
    rows: list[dict[str, object]], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(rows) - 1))
    changed = [dict(row) for row in rows]
    changed[index]["value"] = (rows[index]["value"] or b"") + b"x"  # type: ignore[operator]
    before = column_checksums(table_streams(pa.Table.from_pylist(rows, SCHEMA)))
    after = column_checksums(table_streams(pa.Table.from_pylist(changed, SCHEMA)))
    assert {name for name in before if before[name] != after[name]} == {"value"}


def test_null_and_empty_differ() -> None:
    null = pa.table({"value": pa.array([None, b"ab"], pa.binary())})
    empty = pa.table({"value": pa.array([b"", b"ab"], pa.binary())})
    assert column_checksums(table_streams(null)) != column_checksums(table_streams(empty))
