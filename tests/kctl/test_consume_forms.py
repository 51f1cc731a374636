"""Formats, positions, times and filters of `consume`, without a cluster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.cli.arguments.positions import parse_position, parse_range
from kctl.cli.times import format_duration, parse_duration_ms, parse_time_ms
from kctl.model.offsets import END, START, STORED, Anchor, Position
from kctl.model.records import NO_TIMESTAMP_TYPE, TopicRecord
from kctl.records.filters import all_of, parse_filter
from kctl.records.format import compile_format
from kctl.streaming.stopping import StopRule
from kctl.views.kafka_text.console_consumer import console_text

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
def test_format_letters_are_those_of_kcat(text: str, written: bytes) -> None:
    assert compile_format(text)(RECORD) == written


def test_null_is_empty_or_the_given_text_and_has_size_minus_one() -> None:
    assert compile_format("%k|%s|%S|%K|%R")(BARE) == b"||-1|-1|\xff\xff\xff\xff"
    assert compile_format("%s", b"NULL")(BARE) == b"NULL"


@pytest.mark.parametrize("text", ["%z", "%", "\\", r"\q", "%s{rot13}", "%p{hex}"])
def test_invalid_format_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_format(text)


def test_missing_timestamp_is_empty() -> None:
    assert compile_format("%T{iso}|")(BARE) == b"|"


def test_columns_are_in_the_order_of_the_console_consumer() -> None:
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
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "15", "m", "PT", "P", "P1DT", "-5m", "1y"])
def test_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
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
def test_times(text: str, moment: int) -> None:
    assert parse_time_ms(text, NOW) == moment


@given(st.integers(0, 10**12))
def test_shown_duration_is_rounded_down(milliseconds: int) -> None:
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
def test_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_range(text, NOW)


def test_ranges_may_be_open_and_contain_times_with_colons() -> None:
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
def test_position_is_limited_to_the_log(
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


def test_all_filters_must_match_and_null_never_matches() -> None:
    assert all_of([])(BARE)
    assert not parse_filter(".*")(BARE)
    assert not all_of([parse_filter("val"), parse_filter("k:x")])(RECORD)
    with pytest.raises(ValueError, match="regular expression"):
        parse_filter("v:(")
    with pytest.raises(ValueError, match="name of a header"):
        parse_filter("h:")


def test_reading_ends_when_all_partitions_are_read() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    rule = StopRule({one: 5, two: 2})
    assert rule.wants(one, 3)
    assert rule.wants(one, 4)  # the last one
    assert not rule.is_done
    assert not rule.wants(two, 7)  # what was before has been compacted away
    assert rule.is_done


def test_markers_after_the_last_record_count_as_read() -> None:
    place = TopicPartition("t", 0)
    rule = StopRule({place: 5})
    assert rule.wants(place, 3)
    rule.passed(place, 4)
    assert not rule.is_done
    rule.passed(place, 5)
    assert rule.is_done
