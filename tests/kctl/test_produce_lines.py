"""Lines and JSON lines become records, and records JSON lines, without loss."""

import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.model.records import LOG_APPEND_TIME, Headers, TopicRecord
from kctl.records.json_lines import format_json_line, parse_json_line
from kctl.records.lines import (
    HeaderForm,
    LineForm,
    numbered_records,
    parse_header,
    parse_separator,
    split_pieces,
)

DATA = st.none() | st.binary(max_size=30) | st.text(max_size=20).map(str.encode)
HEADERS = st.lists(st.tuples(st.text(max_size=8), DATA), max_size=3).map(tuple)
RECORDS = st.builds(
    TopicRecord,
    key=DATA,
    value=DATA,
    headers=HEADERS,
    timestamp_ms=st.none() | st.integers(0, 2**53),
    timestamp_type=st.sampled_from(["CreateTime", LOG_APPEND_TIME]),
    topic=st.none() | st.text(max_size=5),
    partition=st.none() | st.integers(0, 99),
    offset=st.none() | st.integers(0, 2**62),
)


@given(RECORDS)
def test_json_line_contains_the_whole_record(record: TopicRecord) -> None:
    line = format_json_line(record)
    assert "\n" not in line
    assert parse_json_line(line) == record


def test_json_fields_are_optional() -> None:
    assert parse_json_line('{"value": "v"}') == TopicRecord(value=b"v")
    assert parse_json_line('{"value": {"a": [1]}, "key": 7}') == TopicRecord(
        key=b"7", value=b'{"a": [1]}'
    )
    assert parse_json_line('{"headers": {"a": "b", "c": null}}').headers == (
        ("a", b"b"),
        ("c", None),
    )


@pytest.mark.parametrize("line", ["{}", '{"foo": 1}', '{"partition": 0, "timestamp": 5}'])
def test_json_object_without_contents_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="neither key nor value nor headers"):
        parse_json_line(line)


def test_json_line_of_dump_log_is_accepted() -> None:
    dumped = {"type": "record", "file": "x.log", "offset": 3, "value": "AP8=", "codec": "none"}
    record = parse_json_line(json.dumps(dumped | {"value_encoding": "base64", "key": None}))
    assert (record.offset, record.value, record.key) == (3, b"\x00\xff", None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nothing", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"value": "v", "partition": "one"}', "partition is 'one'"),
        ('{"value": "v", "timestamp": true}', "timestamp is True"),
        ('{"value": "v", "topic": 5}', "topic is 5"),
        ('{"value": "?", "value_encoding": "base64"}', "value is not base64"),
        ('{"value": "x", "value_encoding": "rot13"}', "value_encoding is 'rot13'"),
        ('{"headers": 5}', "headers is neither"),
        ('{"headers": [{"value": "x"}]}', "has no key"),
    ],
)
def test_invalid_json_line_names_the_problem(line: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json_line(line)


def test_line_is_split_into_key_and_value_at_the_first_separator() -> None:
    form = LineForm(key_separator=b":")
    assert form.record(b"k:v:w") == TopicRecord(key=b"k", value=b"v:w")
    with pytest.raises(ValueError, match="no key separator ':'"):
        form.record(b"v")
    assert replace(form, key=b"k").record(b"v") == TopicRecord(key=b"k", value=b"v")
    assert form.record(b":") == TopicRecord(key=b"", value=b"")


def test_null_marker_makes_keys_and_values_null() -> None:
    form = LineForm(key_separator=b":", null_marker=b"NULL")
    assert form.record(b"k:NULL") == TopicRecord(key=b"k")
    assert LineForm(null_marker=b"").record(b"") == TopicRecord()


def test_defaults_fill_missing_fields() -> None:
    form = LineForm(key=b"k", headers=(("h", b"1"),), timestamp_ms=5, partition=2, json=True)
    found = form.record(b'{"value": "v", "headers": {"own": "0"}, "timestamp": 9, "partition": 1}')
    assert found.key == b"k"
    assert found.headers == (("own", b"0"), ("h", b"1"))
    assert (found.timestamp_ms, found.partition) == (9, 2)


@given(st.lists(st.binary(max_size=8)), st.sampled_from([b"\n", b"||", b"\0"]))
def test_joined_pieces_are_split_again(pieces: list[bytes], delimiter: bytes) -> None:
    pieces = [piece.replace(delimiter[:1], b"") for piece in pieces]
    text = b"".join(piece + delimiter for piece in pieces)
    assert list(split_pieces(io.BytesIO(text), delimiter)) == pieces
    assert list(split_pieces(io.BytesIO(text + b"last"), delimiter)) == [*pieces, b"last"]


def test_invalid_input_is_reported_with_its_line() -> None:
    records = numbered_records([b'{"value": null}', b"x"], LineForm(json=True), "in.jsonl")
    assert next(records)[0] == "in.jsonl:1"
    with pytest.raises(ValueError, match=r"in\.jsonl:2: not JSON"):
        next(records)


def test_separators_and_headers_of_the_command_line() -> None:
    assert parse_separator(r"\t") == b"\t"
    assert parse_separator(r"\x1f|") == b"\x1f|"
    assert parse_separator("é") == "é".encode()
    assert parse_header("a=b=c") == ("a", b"b=c")
    assert parse_header("a") == ("a", None)
    with pytest.raises(ValueError, match="empty"):
        parse_separator("")
    with pytest.raises(ValueError, match="NAME=VALUE"):
        parse_header("=x")


@pytest.mark.parametrize(
    ("line", "headers", "value"),
    [
        (b"a:1,b:2\tvalue", (("a", b"1"), ("b", b"2")), b"value"),
        (b"a:NULL,b:x:y\t", (("a", None), ("b", b"x:y")), b""),
        (b"NULL\tvalue", (), b"value"),
        (b"\tvalue", (), b"value"),
    ],
)
def test_headers_of_a_line_are_those_of_the_console_producer(
    line: bytes, headers: Headers, value: bytes
) -> None:
    record = LineForm(header_form=HeaderForm(), null_marker=b"NULL").record(line)
    assert (record.headers, record.value) == (headers, value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [(b"a:1", "no headers: the delimiter"), (b"a\tvalue", "'a' is not a header")],
)
def test_line_without_headers_is_refused(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        LineForm(header_form=HeaderForm()).record(line)
