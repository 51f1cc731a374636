"""Every format shows the same rows; only terminals get colour."""

import csv
import io
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from broker.model import Uuid
from kctl.cli.errors import CliError
from kctl.cli.output import Output, OutputFormat
from kctl.cli.row_options import parse_row_options
from kctl.cli.tables import Column, Look, display_width, partition_name, record_lines, table_lines
from kctl.cli.theme import ColorMode, set_color_mode

COLUMNS = [
    Column("id", right=True),
    Column("host"),
    Column("replicas"),
    Column("rack", wide=True),
]
ROWS: list[dict[str, object]] = [
    {"id": 1, "host": "alpha", "replicas": [1, 2], "rack": None},
    {"id": 12, "host": "b", "replicas": [], "rack": "r-1"},
]


def shown(capsys: pytest.CaptureFixture[str], output_format: str) -> str:
    Output(OutputFormat(output_format)).rows(ROWS, COLUMNS, name="host")
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_table_aligns_columns_and_leaves_no_trailing_blanks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert shown(capsys, "table").splitlines() == [
        "ID   HOST    REPLICAS",
        " 1   alpha   1,2",
        "12   b       -",
    ]


def test_wide_adds_the_wide_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "wide").splitlines()[0] == "ID   HOST    REPLICAS   RACK"


@pytest.mark.parametrize(
    ("output_format", "parse"),
    [
        ("json", json.loads),
        ("jsonl", lambda text: [json.loads(line) for line in text.splitlines()]),
        ("yaml", yaml.safe_load),
    ],
)
def test_formats_for_programs_give_back_every_value(
    capsys: pytest.CaptureFixture[str], output_format: str, parse: Any
) -> None:
    assert parse(shown(capsys, output_format)) == ROWS


def test_csv_has_the_keys_as_header_and_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(shown(capsys, "csv"))))
    assert rows[0] == {"id": "1", "host": "alpha", "replicas": "1,2", "rack": ""}
    assert rows[1]["rack"] == "r-1"


def test_name_output_has_only_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "name") == "alpha\nb\n"


def test_one_record_is_an_object_in_json_and_lines_for_people(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output(OutputFormat.JSON).record(ROWS[0], COLUMNS, name="host")
    assert json.loads(capsys.readouterr().out) == ROWS[0]
    Output().record(ROWS[0], COLUMNS[:2], name="host")
    assert capsys.readouterr().out == "ID:   1\nHOST: alpha\n"


def test_one_value_is_printed_alone_or_under_its_key(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output().value("cluster_id", "abc")
    Output(OutputFormat.JSON).value("cluster_id", "abc")
    assert capsys.readouterr().out == 'abc\n{\n  "cluster_id": "abc"\n}\n'


def test_kafka_uuids_print_as_kafka_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    topic_id = Uuid.parse("_sKXAzyITPuweRptJ5jjZw")
    for output_format in (OutputFormat.JSON, OutputFormat.TABLE, OutputFormat.YAML):
        Output(output_format).rows([{"topic_id": topic_id}], [Column("topic_id")], name="topic_id")
        assert "_sKXAzyITPuweRptJ5jjZw" in capsys.readouterr().out


def test_colour_only_on_a_terminal_and_not_with_no_color(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    Output().error(CliError("gone"))
    assert "\x1b" not in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    Output().error(CliError("gone"))
    assert "\x1b" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    Output().error(CliError("gone"))
    assert "\x1b" not in capsys.readouterr().err


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z", "M"]), min_size=1))
)
def test_columns_start_at_the_same_place_in_every_row(names: list[str]) -> None:
    rows = [{"name": name, "mark": "|"} for name in names]
    lines = table_lines(rows, [Column("name"), Column("mark", "|")])
    assert len({display_width(line) for line in lines}) == 1


def test_record_lines_put_values_below_each_other() -> None:
    record = {"a": 1, "longer": True}
    assert record_lines(record, [Column("a"), Column("longer")]) == ["A:      1", "LONGER: yes"]


def test_long_list_of_a_record_takes_a_line_per_item_on_a_terminal() -> None:
    record = {"id": "x", "brokers": ["one:9092", "two:9092"]}
    columns = [Column("id", "Id"), Column("brokers", "Brokers")]
    assert record_lines(record, columns, Look(width=20)) == [
        "Id:      x",
        "Brokers: one:9092",
        "         two:9092",
    ]


TYPED = [
    Column("topic"),
    Column("partition", right=True),
    Column("size_bytes", "SIZE", right=True, format=lambda size: f"{size}B"),
    Column("age", raw="age_ms"),
    Column("internal"),
    Column("isr"),
]
TYPED_ROWS: list[dict[str, object]] = [
    {
        "topic": "b",
        "partition": 10,
        "size_bytes": 2_000_000,
        "age": "10m",
        "age_ms": 600_000,
        "internal": True,
        "isr": [1, 2],
    },
    {
        "topic": "a",
        "partition": 9,
        "size_bytes": 5,
        "age": None,
        "age_ms": None,
        "internal": False,
        "isr": [],
    },
]


def typed(
    capsys: pytest.CaptureFixture[str],
    output_format: str,
    columns: str | None = None,
    sort_by: str | None = None,
    *,
    headers: bool = True,
) -> str:
    options = parse_row_options(columns, sort_by, headers=headers)
    Output(OutputFormat(output_format), options).rows(TYPED_ROWS, TYPED, name=partition_name)
    return capsys.readouterr().out


def test_csv_has_typed_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(capsys, "csv") == (
        "topic,partition,size_bytes,age_ms,internal,isr\n"
        'b,10,2000000,600000,true,"1,2"\n'
        "a,9,5,,false,\n"
    )


def test_table_has_sizes_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert "2000000B" in typed(capsys, "table")
    assert json.loads(typed(capsys, "json"))[0]["size_bytes"] == 2_000_000


def test_name_of_a_partition_can_be_given_to_other_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert typed(capsys, "name") == "b:10\na:9\n"


def test_names_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"group": "g"}, {"group": "g"}, {"group": "h"}]
    Output(OutputFormat.NAME).rows(rows, [Column("group")], name="group")
    assert capsys.readouterr().out == "g\nh\n"


def test_columns_are_chosen_by_key_or_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(capsys, "table", "SIZE,topic").splitlines()[0] == "    SIZE   TOPIC"
    assert typed(capsys, "csv", "topic,age") == "topic,age_ms\nb,600000\na,\n"
    assert json.loads(typed(capsys, "json", "topic,age_ms")) == [
        {"topic": "b", "age_ms": 600_000},
        {"topic": "a", "age_ms": None},
    ]


def test_unknown_column_is_a_usage_error_that_lists_the_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for columns, sort_by in (("nosuch", None), (None, "-nosuch")):
        with pytest.raises(CliError, match="no column 'nosuch'") as caught:
            typed(capsys, "table", columns, sort_by)
        assert "topic, partition, size_bytes" in caught.value.hint
        assert int(caught.value.status) == 2


def test_unknown_column_after_a_change_is_only_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = parse_row_options("nosuch", None, headers=True)
    Output(OutputFormat.TABLE, options).rows(
        [{"topic": "a", "status": "deleted"}],
        [Column("topic"), Column("status")],
        name="topic",
        strict=False,
    )
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1] == "a       deleted"
    assert "no column 'nosuch'" in printed.err


@pytest.mark.parametrize(
    ("sort_by", "expected"),
    [
        ("topic", ["a", "b"]),
        ("-topic", ["b", "a"]),
        ("partition", ["a", "b"]),
        ("size_bytes", ["a", "b"]),
        ("-SIZE", ["b", "a"]),
        ("-age", ["b", "a"]),
        ("age", ["b", "a"]),
        ("internal,-topic", ["a", "b"]),
        ("isr", ["a", "b"]),
    ],
)
def test_rows_are_sorted_by_value_and_missing_values_come_last(
    capsys: pytest.CaptureFixture[str], sort_by: str, expected: list[str]
) -> None:
    assert [row["topic"] for row in json.loads(typed(capsys, "json", None, sort_by))] == expected


def test_headers_can_be_omitted(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(capsys, "csv", "topic", headers=False) == "b\na\n"
    assert typed(capsys, "table", "topic", headers=False) == "b\na\n"


def test_nothing_to_do_is_an_empty_list_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    Output(OutputFormat.JSON).nothing("nothing to do")
    assert capsys.readouterr() == ("[]\n", "nothing to do\n")
    Output(OutputFormat.CSV).nothing("nothing to do")
    assert capsys.readouterr() == ("", "nothing to do\n")


def test_color_always_applies_to_pipes_and_never_to_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    try:
        set_color_mode(ColorMode.ALWAYS)
        Output().error(CliError("gone"))
        assert "\x1b" in capsys.readouterr().err
        set_color_mode(ColorMode.NEVER)
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        Output().error(CliError("gone"))
        assert "\x1b" not in capsys.readouterr().err
    finally:
        set_color_mode(ColorMode.AUTO)
