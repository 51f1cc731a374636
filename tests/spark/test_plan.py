from hypothesis import given
from hypothesis import strategies as st

from kctl.spark.planning.plan import (
    AbortedSpan,
    OffsetRange,
    Piece,
    Plan,
    last_records,
    pack,
    split_evenly,
)


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(0, 10**9), st.integers(1, 10**8))
def test_even_split_covers_every_offset_once(
    first: int, count: int, size: int, task_bytes: int
) -> None:
    pieces = split_evenly(OffsetRange("t", 0, first, first + count), size, task_bytes)
    assert [p.first_offset for p in pieces[1:]] == [p.end_offset for p in pieces[:-1]]
    assert (pieces[0].first_offset, pieces[-1].end_offset) == (first, first + count)
    assert all(piece.first_offset < piece.end_offset for piece in pieces)


@given(st.lists(st.integers(0, 300), max_size=50))
def test_packing_keeps_every_piece_in_order_and_tasks_below_the_size(sizes: list[int]) -> None:
    pieces = [Piece("t", 0, at, at + 1, size) for at, size in enumerate(sizes)]
    tasks = pack(pieces, 100)
    assert [piece for task in tasks for piece in task.pieces] == pieces
    assert [task.index for task in tasks] == list(range(len(tasks)))
    assert all(task.size_bytes <= 100 or len(task.pieces) == 1 for task in tasks)


def test_adjacent_tasks_do_not_fit_into_one() -> None:
    tasks = pack([Piece("t", 0, at, at + 1, 40) for at in range(5)], 100)
    assert [len(task.pieces) for task in tasks] == [2, 2, 1]


def test_last_records_do_not_exceed_the_range() -> None:
    ranges = [OffsetRange("t", 0, 5, 100), OffsetRange("t", 1, 5, 8)]
    assert last_records(ranges, 10) == [OffsetRange("t", 0, 90, 100), OffsetRange("t", 1, 5, 8)]


def test_plan_survives_a_json_round_trip() -> None:
    piece = Piece("t", 0, 1, 2, 3, "/x", 4, (AbortedSpan(1, 2, 3),))
    plan = Plan((OffsetRange("t", 0, 1, 2),), pack([piece], 9), {"a": 1}, "run", is_overwrite=True)
    assert Plan.from_json(plan.to_json()) == plan
