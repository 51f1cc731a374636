"""What a bench run states: ratios, and whether promises are kept."""

import pytest

from bench.__main__ import main, measurements
from bench.report import Comparison, median_seconds, report, seconds_per_call


@pytest.mark.parametrize(
    ("ours", "theirs", "goal", "more_is_better", "reached"),
    [
        (30, 100, 0.35, False, True),
        (40, 100, 0.35, False, False),
        (250, 100, 2, True, True),
        (150, 100, 2, True, False),
        (999, 1, None, False, True),
    ],
)
def test_goal_is_an_upper_limit_for_times_and_a_lower_one_for_rates(
    ours: float, theirs: float, goal: float | None, more_is_better: bool, reached: bool
) -> None:
    comparison = Comparison("x", ours, theirs, "peer", "ms", goal, more_is_better)
    assert comparison.reached is reached


def test_report_shows_both_sides_the_ratio_and_the_verdict() -> None:
    missed = Comparison("topics list", 400, 800, "kafka-topics", "ms", goal=0.35)
    heading, line = report([missed])
    assert heading.split()[:4] == ["WHAT", "OURS", "THEIRS", "PEER"]
    assert " ".join(line.split()) == ("topics list 400 ms 800 ms kafka-topics 0.50x ≤ 0.35x MISSED")


def test_quick_actions_are_repeated_until_they_can_be_timed() -> None:
    calls: list[str] = []
    quick, slow = seconds_per_call(
        lambda: calls.append("quick"), lambda: sum(range(1000)), min_time_s=0.001
    )
    assert 0 < quick < slow
    assert len(calls) > 10


def test_median_leaves_the_first_call_out() -> None:
    calls: list[int] = []
    median_seconds(lambda: calls.append(1), rounds=3)
    assert len(calls) == 4


def test_unknown_measurement_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err
    assert "kctl_start" in measurements()
