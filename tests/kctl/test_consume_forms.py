"""Formats, positions, times and filters: what `consume` is told, without a cluster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.kafka_text.console_consumer import console_text
from kctl.records.filters import all_of, parse_filter
from kctl.records.format import compile_format
from kctl.records.position import END, START, STORED, Anchor, Position, parse_position, parse_range
from kctl.records.record import NO_TIMESTAMP_TYPE, TopicRecord
from kctl.records.times import format_duration, parse_duration_ms, parse_time_ms
from kctl.streaming.stopping import StopRule

NOW = 1_800_000_000_000
RECORD = TopicRecord(
    key=b"k\xff",
    value=b"value",
    headers=(("a", b"1"), ("b", None)),
    timestamp_ms=1_700_000_000_123,
    topic="orders",
    partition=3,
    offset=42,
)
BARE = TopicRecord(topic="orders", partition=0, offset=0)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (r"%t-%p@%o\n", b"orders-3@42\n"),
        ("%k=%s %v", b"k\xff=value value"),
        ("%S %K", b"5 2"),
        ("%R", b"\x00\x00\x00\x05"),
        ("%T %h", b"1700000000123 a=1,b=NULL"),
        ("%T{iso}", b"2023-11-14T22:13:20.123Z"),
        ("%k{hex} %s{base64} %s{json}", b'6bff dmFsdWU= "value"'),
        (r"100%%\t\x41\\", b"100%\tA\\"),
    ],
)
def test_format_letters_write_what_kcat_writes(text: str, written: bytes) -> None:
    assert compile_format(text)(RECORD) == written


def test_null_is_nothing_or_what_was_asked_for_and_its_size_is_minus_one() -> None:
    assert compile_format("%k|%s|%S|%K|%R")(BARE) == b"||-1|-1|\xff\xff\xff\xff"
    assert compile_format("%s", b"NULL")(BARE) == b"NULL"


@pytest.mark.parametrize("text", ["%z", "%", "\\", r"\q", "%s{rot13}", "%p{hex}"])
def test_format_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_format(text)


def test_time_that_is_none_is_shown_as_nothing() -> None:
    assert compile_format("%T{iso}|")(BARE) == b"|"


def test_console_consumers_columns_come_in_its_order() -> None:
    everything = dict.fromkeys(
        ["print.timestamp", "print.partition", "print.offset", "print.headers", "print.key"], "true"
    )
    assert console_text(RECORD, everything) == (
        b"CreateTime:1700000000123\tPartition:3\tOffset:42\ta:1,b:null\tk\xff\tvalue\n"
    )
    bare = TopicRecord(timestamp_type=NO_TIMESTAMP_TYPE, partition=0, offset=0)
    shown = console_text(bare, everything | {"null.literal": "-", "key.separator": "|"})
    assert shown == b"NO_TIMESTAMP|Partition:0|Offset:0|NO_HEADERS|-|-\n"
    assert console_text(RECORD, {"print.value": "false", "line.separator": ";"}) == b";"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250ms", 250),
        ("15m", 900_000),
        ("1h30m", 5_400_000),
        ("2w", 1_209_600_000),
        ("PT15M", 900_000),
        ("P1DT2H3M4.5S", 93_784_500),
    ],
)
def test_lengths_of_time(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "15", "m", "PT", "P", "P1DT", "-5m", "1y"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no length of time"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", NOW),
        ("-15m", NOW - 900_000),
        ("1700000000000", 1_700_000_000_000),
        ("2026-11-01T00:00Z", 1_793_491_200_000),
        ("2026-11-01T08:00+08:00", 1_793_491_200_000),
        ("2026-11-01", 1_793_491_200_000),
        ("2026-11-01T00:00:00.250", 1_793_491_200_250),
    ],
)
def test_moments(text: str, moment: int) -> None:
    assert parse_time_ms(text, NOW) == moment


@given(st.integers(0, 10**12))
def test_duration_shown_is_at_most_what_it_was_and_nearly_all_of_it(milliseconds: int) -> None:
    shown = parse_duration_ms(format_duration(milliseconds))
    assert milliseconds * 0.95 - 1000 <= shown <= milliseconds


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("start", START),
        ("earliest", START),
        ("end", END),
        ("stored", STORED),
        ("17", Position(Anchor.OFFSET, 17)),
        ("-10", Position(Anchor.END, 10)),
        ("+5", Position(Anchor.START, 5)),
        ("-15m", Position(Anchor.TIME, NOW - 900_000)),
        ("@-15m", Position(Anchor.TIME, NOW - 900_000)),
        ("@2026-11-01T00:00Z", Position(Anchor.TIME, 1_793_491_200_000)),
    ],
)
def test_positions(text: str, position: Position) -> None:
    assert parse_position(text, NOW) == position
    assert parse_range(text, NOW) == (position, None)


@pytest.mark.parametrize("text", ["", "soon", "-", "@", "@tomorrow", "+x", "1:2:3", "a:b"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="wanted is"):
        parse_range(text, NOW)


def test_ranges_may_leave_out_a_side_and_have_times_with_colons() -> None:
    assert parse_range("100:200", NOW) == (
        Position(Anchor.OFFSET, 100),
        Position(Anchor.OFFSET, 200),
    )
    assert parse_range(":5", NOW) == (START, Position(Anchor.OFFSET, 5))
    assert parse_range("5:", NOW) == (Position(Anchor.OFFSET, 5), END)
    times = parse_range("@2026-11-01T00:00Z:@2026-11-01T00:00:01Z", NOW)
    assert times == (
        Position(Anchor.TIME, 1_793_491_200_000),
        Position(Anchor.TIME, 1_793_491_201_000),
    )


@given(
    st.sampled_from([Anchor.START, Anchor.END, Anchor.OFFSET]),
    st.integers(0, 100),
    st.integers(0, 50),
    st.integers(0, 50),
)
def test_position_is_never_outside_of_the_log(
    anchor: Anchor, number: int, start: int, length: int
) -> None:
    assert start <= Position(anchor, number).offset(start, start + length) <= start + length


def test_last_ten_of_a_log_begin_ten_before_its_end() -> None:
    assert parse_position("-10", NOW).offset(5, 100) == 90
    assert parse_position("-10", NOW).offset(95, 100) == 95


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("val", True),
        ("v:^value$", True),
        ("v:^al", False),
        ("k:k", True),
        ("k:x", False),
        ("h:a", True),
        ("h:c", False),
        ("h:a=1", True),
        ("h:a=2", False),
        ("h:b=.", False),
        ("x:y", False),
    ],
)
def test_filters(text: str, passes: bool) -> None:
    assert parse_filter(text)(RECORD) is passes


def test_all_filters_must_pass_and_null_never_does() -> None:
    assert all_of([])(BARE)
    assert not parse_filter(".*")(BARE)
    assert not all_of([parse_filter("val"), parse_filter("k:x")])(RECORD)
    with pytest.raises(ValueError, match="regular expression"):
        parse_filter("v:(")
    with pytest.raises(ValueError, match="name of a header"):
        parse_filter("h:")


def test_reading_is_done_when_every_partition_has_come_to_its_end() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    rule = StopRule({one: 5, two: 2})
    assert rule.wants(one, 3)
    assert rule.wants(one, 4)  # the last one
    assert not rule.is_done
    assert not rule.wants(two, 7)  # what was before has been compacted away
    assert rule.is_done


def test_markers_after_the_last_record_do_not_keep_a_reading_open() -> None:
    place = TopicPartition("t", 0)
    rule = StopRule({place: 5})
    assert rule.wants(place, 3)
    rule.passed(place, 4)
    assert not rule.is_done
    rule.passed(place, 5)
    assert rule.is_done
