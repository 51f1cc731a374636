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
from kctl.cli.tables import Column, display_width, record_lines, table_lines

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
