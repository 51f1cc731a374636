"""Progress of reassignments: bytes, rate, remaining time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.model.reassignments import PartitionChange, Reassignment
from kctl.plans.reassignment.progress import ProgressMeter, copied_bytes
from kctl.views.quantities import human_bytes
from kctl.views.reassignments import progress_text

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MOVES = [PartitionChange(T0, (1,), (2,), 1000), PartitionChange(T1, (1,), (3,), 500)]


def moving(partition: TopicPartition, target: int) -> Reassignment:
    return Reassignment(partition, (target, 1), (target,), (1,))


def test_copied_bytes_are_those_of_the_added_replicas() -> None:
    sizes = {(T0, 1): 1000, (T0, 2): 300}
    assert copied_bytes(moving(T0, 2), sizes) == (300, 1000)
    # A replica that has segments which the leader has deleted meanwhile is not more than whole.
    assert copied_bytes(moving(T0, 2), {(T0, 1): 1000, (T0, 2): 1500}) == (1000, 1000)
    assert copied_bytes(moving(T0, 2), {}) == (0, 0)


def test_progress_has_bytes_rate_and_remaining_time() -> None:
    meter = ProgressMeter(MOVES)
    under_way = {T0: moving(T0, 2), T1: moving(T1, 3)}
    first = meter.sample(10.0, under_way, {(T0, 1): 1000, (T0, 2): 100})
    assert (first.bytes_per_s, first.seconds_left) == (None, None)
    assert progress_text(first) == "0 of 2 partitions moved, 100 B of 1.5 kB"
    meter.finished([T0])
    second = meter.sample(12.0, {T1: moving(T1, 3)}, {(T1, 1): 500, (T1, 3): 100})
    assert (second.done_bytes, second.bytes_per_s) == (1100, 500)
    assert progress_text(second) == "1 of 2 partitions moved, 1.1 kB of 1.5 kB, 500 B/s, 800ms left"
    meter.finished([T1])
    assert "left" not in progress_text(meter.sample(13.0, {}, {}))


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 2000)), min_size=1))
def test_done_bytes_never_decrease_and_never_exceed_the_total(seen: list[tuple[int, int]]) -> None:
    meter = ProgressMeter(MOVES)
    under_way = {T0: moving(T0, 2)}
    before = 0
    for now, (full, there) in enumerate(seen):
        look = meter.sample(float(now), under_way, {(T0, 1): full, (T0, 2): there})
        assert before <= look.done_bytes <= look.all_bytes
        before = look.done_bytes


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_340_000, "2.3 MB"), (5e12, "5.0 TB")],
)
def test_bytes_are_shown_in_decimal_units(count: float, text: str) -> None:
    assert human_bytes(count) == text
