"""Plans for groups: lag, verdicts, conditions, trends and resets."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.cli.arguments.conditions import parse_condition
from kctl.model.cluster import Broker
from kctl.model.groups import Group, Member
from kctl.model.lag import GroupLag, LogBounds, PartitionLag, Verdict
from kctl.model.offset_resets import ResetPlan
from kctl.plans.lag import first_unread, partition_lags
from kctl.plans.offset_resets import current_or_end, format_csv, parse_csv, plan_reset, shifted

ONE, TWO, THREE = (TopicPartition("orders", number) for number in range(3))
MEMBER = Member("m-1", None, "client", "/10.0.0.1", (ONE, TWO))
GROUP = Group("billing", "Stable", "range", (MEMBER,), Broker(1, "host", 9092, None))
BOUNDS = LogBounds({ONE: 0, TWO: 50, THREE: 0}, {ONE: 100, TWO: 100, THREE: 100})


def lag_of(
    current: int | None, end: int | None = 100, member: Member | None = MEMBER
) -> PartitionLag:
    return PartitionLag("billing", ONE, current, 10, end, member)


def test_partitions_committed_or_assigned_are_all_there() -> None:
    lags = partition_lags(GROUP, {ONE: 90, THREE: 100}, BOUNDS)
    assert [(lag.place, lag.lag, lag.member) for lag in lags] == [
        (ONE, 10, MEMBER),
        (TWO, None, MEMBER),
        (THREE, 0, None),
    ]
    assert first_unread(lags) == {ONE: 90}


def test_first_unread_record_is_not_one_that_was_deleted() -> None:
    lags = partition_lags(GROUP, {TWO: 20}, BOUNDS)
    assert first_unread(lags) == {TWO: 50}


@pytest.mark.parametrize(
    ("lag", "verdict"),
    [
        (lag_of(100), Verdict.OK),
        (lag_of(90), Verdict.LAGGING),
        (replace(lag_of(90), time_lag_ms=10_000), Verdict.OK),
        (replace(lag_of(90), time_lag_ms=10_001), Verdict.LAGGING),
        (lag_of(90, member=None), Verdict.UNREAD),
        (lag_of(None), Verdict.NO_OFFSET),
        (lag_of(5), Verdict.LOST),
        (lag_of(101), Verdict.BEYOND),
        (lag_of(90, end=None), Verdict.UNKNOWN),
    ],
)
def test_verdicts(lag: PartitionLag, verdict: Verdict) -> None:
    assert lag.verdict is verdict


def group_with(*lags: int | None, time_lag_ms: int | None = None) -> GroupLag:
    partitions = (
        PartitionLag("g", ONE, None if lag is None else 100 - lag, 0, 100, None, time_lag_ms)
        for lag in lags
    )
    return GroupLag(GROUP, tuple(partitions))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("lag>10", True),
        ("lag > 20", False),
        ("lag>=20", True),
        ("total-lag=25", True),
        ("total-lag!=25", False),
        ("members<1", False),
        ("members<=1", True),
        ("time-lag>5m", True),
        ("time-lag>1h", False),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    group = group_with(20, 5, None, time_lag_ms=600_000)
    assert parse_condition(text).holds(group) is holds


def test_unknown_values_fulfil_no_condition() -> None:
    assert not parse_condition("time-lag<1h").holds(group_with(5))


@pytest.mark.parametrize("text", ["", "lag", "lag>", "lag>x", "lags>1", "time-lag>5", ">5"])
def test_malformed_condition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a condition|not a number|not a duration"):
        parse_condition(text)


def test_offsets_outside_of_the_log_are_moved_to_its_nearer_end() -> None:
    plan = plan_reset("g", {ONE: 500, TWO: 10, THREE: 7}, {ONE: 100}, BOUNDS)
    assert [(new.place, new.new_offset, new.change) for new in plan.offsets] == [
        (ONE, 100, 0),
        (TWO, 50, None),
        (THREE, 7, None),
    ]
    assert [new.note for new in plan.offsets] == [
        "500 is after the log end",
        "10 is before the log start",
        "",
    ]


OFFSETS = st.dictionaries(st.sampled_from([ONE, TWO, THREE]), st.integers(-200, 300))


@given(OFFSETS)
def test_new_offsets_are_always_inside_of_the_log(wanted: dict[TopicPartition, int]) -> None:
    plan = plan_reset("g", wanted, {}, BOUNDS)
    assert [new.place for new in plan.offsets] == sorted(wanted)
    for new in plan.offsets:
        assert BOUNDS.starts[new.place] <= new.new_offset <= BOUNDS.ends[new.place]
        assert (new.new_offset == wanted[new.place]) is (new.note == "")


def test_shift_needs_something_to_shift_from() -> None:
    assert shifted([ONE], {ONE: 5}, -2) == {ONE: 3}
    with pytest.raises(ValueError, match="orders-1"):
        shifted([ONE, TWO], {ONE: 5}, 1)


def test_current_is_the_end_where_nothing_was_committed() -> None:
    assert current_or_end([ONE, TWO], {ONE: 5}, BOUNDS.ends) == {ONE: 5, TWO: 100}


@given(st.dictionaries(st.sampled_from(["a", "b,c", 'd"']), OFFSETS, min_size=1))
def test_exported_offsets_can_be_read_again(
    offsets: dict[str, dict[TopicPartition, int]],
) -> None:
    bounds = LogBounds({}, {})
    plans = [plan_reset(group, wanted, {}, bounds) for group, wanted in offsets.items()]
    expected = {group: wanted for group, wanted in offsets.items() if wanted}
    assert parse_csv(format_csv(plans), list(offsets)) == expected


def test_file_that_is_wrong_is_named_by_its_line() -> None:
    assert format_csv([ResetPlan("g", ())]) == ""
    with pytest.raises(ValueError, match="line 2"):
        parse_csv("orders,0,5\norders,x,5\n", ["g"])
    with pytest.raises(ValueError, match="line 1"):
        parse_csv("orders,0,5\n", ["g", "h"])  # whose?
