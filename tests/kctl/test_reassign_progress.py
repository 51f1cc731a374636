"""How far a reassignment is said to be: bytes, rate, time left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.admin.reassignments import Reassignment
from kctl.plans.reassign_cost import Move, human_bytes
from kctl.plans.reassign_progress import Meter, arrived

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MOVES = [Move(T0, (1,), (2,), 1000), Move(T1, (1,), (3,), 500)]


def moving(partition: TopicPartition, target: int) -> Reassignment:
    return Reassignment(partition, (target, 1), (target,), (1,))


def test_bytes_that_have_arrived_are_those_of_the_added_replicas() -> None:
    sizes = {(T0, 1): 1000, (T0, 2): 300}
    assert arrived(moving(T0, 2), sizes) == (300, 1000)
    # A replica that has segments which the leader has deleted meanwhile is not more than whole.
    assert arrived(moving(T0, 2), {(T0, 1): 1000, (T0, 2): 1500}) == (1000, 1000)
    assert arrived(moving(T0, 2), {}) == (0, 0)


def test_look_tells_bytes_rate_and_time_left() -> None:
    meter = Meter(MOVES)
    under_way = {T0: moving(T0, 2), T1: moving(T1, 3)}
    first = meter.look(10.0, under_way, {(T0, 1): 1000, (T0, 2): 100})
    assert (first.bytes_per_s, first.seconds_left) == (None, None)
    assert first.text() == "0 of 2 partitions moved, 100 B of 1.5 kB"
    meter.finished([T0])
    second = meter.look(12.0, {T1: moving(T1, 3)}, {(T1, 1): 500, (T1, 3): 100})
    assert (second.done_bytes, second.bytes_per_s) == (1100, 500)
    assert second.text() == "1 of 2 partitions moved, 1.1 kB of 1.5 kB, 500 B/s, 800ms left"
    meter.finished([T1])
    assert "left" not in meter.look(13.0, {}, {}).text()


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 2000)), min_size=1))
def test_done_bytes_never_fall_and_never_exceed_the_whole(seen: list[tuple[int, int]]) -> None:
    meter = Meter(MOVES)
    under_way = {T0: moving(T0, 2)}
    before = 0
    for now, (full, there) in enumerate(seen):
        look = meter.look(float(now), under_way, {(T0, 1): full, (T0, 2): there})
        assert before <= look.done_bytes <= look.all_bytes
        before = look.done_bytes


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_340_000, "2.3 MB"), (5e12, "5.0 TB")],
)
def test_bytes_are_shown_in_decimal_units(count: float, text: str) -> None:
    assert human_bytes(count) == text
