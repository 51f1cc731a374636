from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.records.batch import iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.record import Header, RecordTuple
from kctl.spark.decoding.columns import TYPES, ColumnGatherer

BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
RECORDS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 10**12), BYTES, BYTES, HEADERS), max_size=30
)


def with_offsets(
    rows: list[tuple[int, int, bytes | None, bytes | None, list[Header]]],
) -> list[RecordTuple]:
    """Records whose offsets rise by the first field, as compaction leaves them."""
    records: list[RecordTuple] = []
    offset = 0
    for gap, timestamp, key, value, headers in rows:
        offset += gap
        records.append((offset, timestamp, key, value, tuple(headers)))
    return records


@given(RECORDS, st.lists(st.integers(0, 30), max_size=4), st.integers(0, 80), st.integers(0, 80))
def test_table_has_the_records_of_all_batches_within_the_range(
    rows: list[tuple[int, int, bytes | None, bytes | None, list[Header]]],
    cuts: list[int],
    first: int,
    end: int,
) -> None:
    records = with_offsets(rows)
    gatherer = ColumnGatherer("orders", 7, tuple(TYPES))
    for start, stop in pairwise(sorted({0, len(records), *(c for c in cuts if c < len(records))})):
        data = build_batch(records[start:stop], BatchSettings(partition_leader_epoch=3))
        (batch,) = iterate_batches(data)
        gatherer.add(batch, first, end)
    wanted = [record for record in records if first <= record[0] < end]
    assert len(gatherer) == len(wanted)
    if not wanted:
        return
    table = gatherer.table()
    table.validate(full=True)
    found = table.to_pylist()
    assert [(row["offset"], row["key"], row["value"]) for row in found] == [
        (offset, key, value) for offset, _, key, value, _ in wanted
    ]
    times = table.column("timestamp").cast("int64").to_pylist()
    assert times == [record[1] for record in wanted]
    assert [[(h["key"], h["value"]) for h in row["headers"]] for row in found] == [
        list(record[4]) for record in wanted
    ]
    assert {(row["topic"], row["partition"], row["leader_epoch"]) for row in found} == {
        ("orders", 7, 3)
    }
    assert {row["timestamp_type"] for row in found} == {"CreateTime"}


def test_missing_batch_fields_are_null() -> None:
    (batch,) = iterate_batches(build_batch([(0, -1, None, None, ())], BatchSettings()))
    gatherer = ColumnGatherer("t", 0, ("timestamp", "leader_epoch", "producer_id"))
    gatherer.add(batch, 0, 1)
    assert gatherer.table().to_pylist() == [
        {"timestamp": None, "leader_epoch": None, "producer_id": None}
    ]


def test_values_that_differ_by_batch_stay_with_their_records() -> None:
    gatherer = ColumnGatherer("t", 0, ("offset", "producer_id"))
    for offset, producer_id in ((0, 5), (2, -1), (3, 6)):
        settings = BatchSettings(producer_id=producer_id, producer_epoch=0, base_sequence=0)
        rows = [(offset, 0, None, b"v", ()), (offset + 1, 0, None, b"v", ())][
            : 2 if not offset else 1
        ]
        (batch,) = iterate_batches(build_batch(rows, settings))
        gatherer.add(batch, 0, 9)
    ids = [row["producer_id"] for row in gatherer.table().to_pylist()]
    assert ids == [5, 5, None, 6]
