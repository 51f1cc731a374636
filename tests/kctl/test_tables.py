"""Tables: they fit the terminal, and what is important stays."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.cli.charts import bar, sparkline
from kctl.cli.tables import Column, Look, display_width, fit_spans, make_table, table_lines
from kctl.cli.terminal import visible, visible_bytes, visible_json, visible_lines
from kctl.cli.theme import Style, paint, word_style
from kctl.cli.trees import Node, tree_lines
from kctl.views.groups import OFFSET_COLUMNS, WATCH_COLUMNS
from kctl.views.log_dirs import COLUMNS, GroupBy
from kctl.views.reassignments import BROKER_MAP_COLUMNS, CHANGE_COLUMNS
from kctl.views.topics import HEALTH_COLUMNS, LIST_COLUMNS

LAGS: list[dict[str, object]] = [
    {
        "group": "billing",
        "topic": "orders",
        "partition": number,
        "current_offset": 123_456_789,
        "log_start_offset": 0,
        "log_end_offset": 123_456_789 + lag,
        "lag": lag,
        "time_lag": "4m10s",
        "time_lag_ms": 250_000,
        "verdict": verdict,
        "client_id": "billing-consumer-7f9c",
        "host": "/10.20.30.40",
        "member_id": "billing-consumer-7f9c-ab5dcd6e-4b7e-4f2a-9a35-9d1c51a8d0f1",
    }
    for number, (lag, verdict) in enumerate([(0, "ok"), (8123, "lagging"), (99_000, "stalled")])
]


def shown(width: int | None, *, wide: bool = False) -> list[str]:
    columns = [column for column in OFFSET_COLUMNS if wide or not column.wide]
    return make_table(LAGS, columns, Look(width, charts=True)).lines


def test_narrow_terminal_keeps_partition_lag_and_verdict() -> None:
    assert shown(60) == [
        "GROUP     TOPIC    PARTITION     LAG   TIME-LAG   VERDICT",
        "billing   orders           0       0      4m10s   ok",
        "billing   orders           1    8123      4m10s   lagging",
        "billing   orders           2   99000      4m10s   stalled",
    ]


def test_terminal_of_80_columns_shows_more() -> None:
    assert shown(80) == [
        "GROUP     TOPIC    PARTITION     CURRENT     LAG   TIME-LAG   VERDICT",
        "billing   orders           0   123456789       0      4m10s   ok",
        "billing   orders           1   123456789    8123      4m10s   lagging",
        "billing   orders           2   123456789   99000      4m10s   stalled",
    ]


def test_wide_terminal_and_pipe_show_everything() -> None:
    expected = [
        "GROUP     TOPIC    PARTITION     CURRENT     LOG-END     LAG   TIME-LAG   VERDICT   "
        "CLIENT-ID",
        "billing   orders           0   123456789   123456789       0      4m10s   ok        "
        "billing-consumer-7f9c",
        "billing   orders           1   123456789   123464912    8123      4m10s   lagging   "
        "billing-consumer-7f9c",
        "billing   orders           2   123456789   123555789   99000      4m10s   stalled   "
        "billing-consumer-7f9c",
    ]
    assert shown(140) == expected
    assert shown(None) == expected


@pytest.mark.parametrize("width", [60, 80, 140])
def test_hidden_columns_are_reported(width: int) -> None:
    columns = list(OFFSET_COLUMNS)
    table = make_table(LAGS, columns, Look(width))
    shown_headings = re.split(r"\s{2,}", table.lines[0].strip())
    hidden = [column.heading for column in table.hidden]
    assert sorted([*shown_headings, *hidden]) == sorted(column.heading for column in columns)


names = st.text(st.characters(codec="utf-8"), max_size=60)
VIEWS = [
    OFFSET_COLUMNS,
    WATCH_COLUMNS,
    LIST_COLUMNS,
    HEALTH_COLUMNS,
    CHANGE_COLUMNS,
    BROKER_MAP_COLUMNS,
    *COLUMNS.values(),
]

LOADS = [f"{what}_{when}" for what in ("replicas", "leaders", "bytes") for when in ("now", "then")]


@given(st.sampled_from(VIEWS), st.lists(names, min_size=1, max_size=4), st.integers(60, 200))
def test_no_line_is_wider_than_the_terminal(
    columns: list[Column], texts: list[str], width: int
) -> None:
    rows: list[dict[str, object]] = [
        dict.fromkeys(LOADS, len(text)) | {column.key: _value(column, text) for column in columns}
        for text in texts
    ]
    look = Look(width, charts=True)
    for line in table_lines(rows, columns, look):
        assert display_width(line) <= width
        assert "\n" not in line
        assert "\x1b" not in line


def _value(column: Column, text: str) -> object:
    if column.format:
        return len(text) * 10**9
    if column.key in ("replicas", "isr", "now", "then"):
        return list(range(len(text) % 4))
    return len(text) if column.right else text


def test_columns_without_values_are_dropped_first_and_not_reported() -> None:
    rows = [{"a": "x" * 20, "b": None, "c": "y" * 20}]
    table = make_table(rows, [Column("a"), Column("b", "B" * 20), Column("c")], Look(45))
    assert table.lines == ["A                      C", "x" * 20 + "   " + "y" * 20]
    assert table.hidden == []


def test_long_text_is_cut_before_a_column_is_dropped() -> None:
    rows = [{"config": "a.b", "value": "v" * 200, "source": "default"}]
    lines = table_lines(rows, [Column("config"), Column("value"), Column("source")], Look(60))
    assert lines[0].split() == ["CONFIG", "VALUE", "SOURCE"]
    assert len(lines[1]) == 60
    assert "v…" in lines[1]


def test_headings_can_be_left_out() -> None:
    assert table_lines([{"a": 1}], [Column("a", "LONG-HEADING")], Look(headers=False)) == ["1"]


def test_colours_do_not_move_columns() -> None:
    colored = make_table(LAGS, OFFSET_COLUMNS, Look(200, paint)).lines
    plain = make_table(LAGS, OFFSET_COLUMNS, Look(200)).lines
    assert [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in colored] == plain
    assert "\x1b[33mlagging\x1b[0m" in colored[2]
    assert "\x1b[31mstalled\x1b[0m" in colored[3]


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("ok", Style.GOOD),
        ("ok,lagging", Style.WARN),
        ("under-replicated,unavailable", Style.BAD),
        ("Stable", Style.GOOD),
        ("something", None),
    ],
)
def test_status_has_the_colour_of_its_worst_word(text: str, style: Style | None) -> None:
    assert word_style(text) is style


def test_isr_is_coloured_by_its_state() -> None:
    (isr,) = [column for column in HEALTH_COLUMNS if column.key == "isr"]
    assert isr.style
    complete = {"leader": 1, "replicas": [1, 2], "isr": [2, 1]}
    assert isr.style(complete) is Style.GOOD
    assert isr.style(complete | {"isr": [1]}) is Style.WARN
    assert isr.style(complete | {"leader": None, "isr": [1]}) is Style.BAD
    assert isr.style(complete | {"replicas": [1, 2, 3], "adding_replicas": [3]}) is Style.GOOD


def test_plan_marks_replicas_that_come_and_go() -> None:
    columns = {column.key: column for column in CHANGE_COLUMNS}
    row = {"now": [1, 2], "then": [2, 3]}
    assert columns["now"].cell(row) == (("1", Style.BAD), (",", None), ("2", None))
    assert columns["then"].cell(row) == (("2", None), (",", None), ("3", Style.GOOD))


def test_log_directories_show_how_full_their_disk_is() -> None:
    row = {"broker": 1, "log_dir": "/d", "size_bytes": 0, "usable_bytes": 4, "total_bytes": 100}
    lines = table_lines([row], COLUMNS[GroupBy.DIR], Look(120, charts=True))
    assert "███████████▌  96%" in lines[1]
    assert "4B" in lines[1]


def test_bars_and_sparklines() -> None:
    assert [bar(share, 4) for share in (0, 0.5, 0.53, 1, 2)] == ["", "██", "██▏", "████", "████"]
    assert sparkline([0, None, 4, 8, 16], 5) == "▁ ▃▅█"
    assert sparkline([0, 0], 5) == "▁▁"
    assert sparkline([1, 2, 3, 4], 2) == "▇█"
    assert sparkline([], 5) == ""


def test_control_characters_are_shown_and_not_obeyed() -> None:
    assert visible("a\x1b[2Jb\n\t\r\x9b1m\u202e") == "a\\x1b[2Jb\\n\\t\\r\\x9b1m\\u202e"
    assert visible("Ünï 日本 \u00a0") == "Ünï 日本 \u00a0"
    assert visible(b"caf\xe9".decode(errors="surrogateescape")) == "caf\\xe9"
    assert visible_lines("a\n\tb\x07\r") == "a\n\tb\\x07\\r"
    assert visible_bytes(b"\xff\x00\n\xc3\xa9") == "\\xff\\x00\né".encode()
    assert visible_json('{"a": "\x9b\x7f"}\n') == '{"a": "\\u009b\\u007f"}\n'


@given(st.text())
def test_escaped_text_contains_no_control_character(text: str) -> None:
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e]", visible(text))
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f]", visible_bytes(text.encode(errors="replace")).decode()
    )


def test_tree_is_drawn_and_cut() -> None:
    leaf = Node((("leaf\x1b", None),))
    root = Node((("root", None),), [Node((("one", None),), [leaf]), Node((("two", None),))])
    assert list(tree_lines(root)) == ["root", "├── one", "│   └── leaf\\x1b", "└── two"]
    assert list(tree_lines(root, Look(width=13)))[2] == "│   └── leaf…"


def test_spans_are_cut_at_the_width_of_the_terminal() -> None:
    assert fit_spans((("日本", None), ("abc", Style.BAD)), 5) == (
        ("日本", None),
        ("…", None),
    )
