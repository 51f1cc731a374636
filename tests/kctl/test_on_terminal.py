"""kctl on real terminals of several widths, beside the same commands in pipes."""

import json
import re
import subprocess
import sys

import pytest

from kctl.cli.tables import display_width
from tests.support.broker import RunningBroker
from tests.support.kctl import CLEAN_ENVIRONMENT, Kctl, KctlResult
from tests.support.terminal import Screen, kctl_on_terminal, run_on_terminal

WIDTHS = (60, 80, 140)
ORDERS = "".join(f'k{number}\t{{"id": {number}, "paid": true}}\n' for number in range(20))
EVIL = "\x1b[2Jgone \x1b]0;title\x07\n"
COMMANDS = [
    "topics list",
    "topics describe orders -o wide",
    "topics describe --under-replicated",
    "groups describe billing",
    "groups describe billing -o wide",
    "groups describe billing --totals",
    "groups describe billing -o tree",
    "groups watch billing -n 2 -i 0.05",
    "groups watch billing -n 1 -o wide",
    "groups reset-offsets billing --topic orders --to-earliest",
    "cluster -o tree",
    "log-dirs",
    "log-dirs --by dir",
    "log-dirs -o tree",
    "brokers list",
    "offsets orders -o wide",
    "configs describe topic:orders --all",
    "configs describe topic:orders -o wide",
    "topics alter orders --config retention.ms=1000 --dry-run",
    "reassign plan orders --balance count",
]


@pytest.fixture(scope="module")
def filled(shared_broker: RunningBroker, request: pytest.FixtureRequest) -> str:
    """The address of a broker with records, a lagging group, and a record with controls."""
    kctl: Kctl = request.getfixturevalue("module_kctl")
    address = shared_broker.bootstrap_servers

    def run(*args: str, stdin: str | None = None) -> KctlResult:
        result = kctl(*args, "-b", address, stdin=stdin)
        assert result.exit_code == 0, result.stderr
        return result

    run("topics", "create", "orders", "-p", "3", "--config", "retention.ms=600000000")
    run("topics", "create", "evil")
    run("produce", "orders", "-K", "\t", stdin=ORDERS)
    run("consume", "orders", "--group", "billing", "--exit", "-n", "5")
    run("produce", "evil", stdin=EVIL)
    return address


@pytest.fixture(scope="module")
def module_kctl() -> Kctl:
    """kctl in this process."""
    from tests.support.kctl import run_kctl

    return run_kctl


def on_terminal(line: str, address: str, width: int = 80, **env: str) -> Screen:
    return kctl_on_terminal(*line.split(), "-b", address, width=width, env=env)


def piped(line: str, address: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in CLEAN_ENVIRONMENT.items() if value is not None}
    words = [sys.executable, "-m", "kctl", *line.split(), "-b", address]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env={"TERM": "xterm", **environ}
    )


@pytest.mark.parametrize("line", COMMANDS)
def test_no_line_of_a_table_wraps(line: str, filled: str) -> None:
    width = WIDTHS[COMMANDS.index(line) % len(WIDTHS)]
    shown = on_terminal(line, filled, width)
    assert shown.exit_code == 0, shown.written
    notes = ("billing:", "dry run", "columns that", "nothing to", "orders: ")
    for text in shown.lines:
        if not text.startswith(notes):
            assert display_width(text) <= width, text


@pytest.mark.parametrize("width", WIDTHS)
def test_lag_and_verdict_are_on_the_narrowest_terminal(width: int, filled: str) -> None:
    shown = on_terminal("groups describe billing -o wide", filled, width)
    headings = shown.lines[0].split()
    assert {"TOPIC", "PARTITION", "LAG", "VERDICT"} <= set(headings)
    assert any("columns that did not fit" in text for text in shown.lines) == (width < 140)


def test_watch_draws_sparklines_on_a_terminal_only(filled: str) -> None:
    shown = on_terminal("groups watch billing -n 3 -i 0.05", filled, 140)
    assert "LAG-HISTORY" in shown.lines[0]
    assert re.search("[▁▂▃▄▅▆▇█]{2,3}", "\n".join(shown.lines))
    assert "HISTORY" not in piped("groups watch billing -n 2 -i 0.05", filled).stdout
    rows = json.loads(piped("groups watch billing -n 1 -o json", filled).stdout)
    assert "lags" not in rows[0]


def test_colour_is_for_terminals_and_can_be_switched_off(filled: str) -> None:
    line = "topics describe orders"
    assert on_terminal(line, filled).has_color
    assert not on_terminal(line, filled, NO_COLOR="1").has_color
    assert not on_terminal(line, filled, TERM="dumb").has_color
    assert not on_terminal(f"{line} --color never", filled).has_color
    assert on_terminal(f"{line} --color always", filled, NO_COLOR="1").has_color
    assert "\x1b" not in piped(line, filled).stdout
    assert "\x1b[" in piped(f"{line} --color always", filled).stdout


def test_json_has_colours_on_a_terminal_and_is_the_same_text(filled: str) -> None:
    for line in ("topics describe orders -o json", "topics list -o jsonl"):
        shown = on_terminal(line, filled)
        assert shown.has_color
        assert shown.lines == piped(line, filled).stdout.splitlines()


def test_csv_has_no_colours_even_on_a_terminal(filled: str) -> None:
    shown = on_terminal("topics list -o csv", filled)
    assert not shown.has_color
    assert shown.lines == piped("topics list -o csv", filled).stdout.splitlines()


@pytest.mark.parametrize(
    "line",
    [
        "consume evil -e",
        "consume evil -e -o wide",
        "consume evil -e -o jsonl",
        "consume evil -e -o csv",
        "consume evil -e --format kafka",
        "consume evil -e --format %s\\n",
    ],
)
def test_records_cannot_control_the_terminal(line: str, filled: str) -> None:
    shown = on_terminal(line, filled)
    assert shown.exit_code == 0
    written = re.sub(r"\x1b\[[\d;]*m", "", shown.written)
    assert "\x1b" not in written
    assert "\x07" not in written
    assert "gone" in written or "base64" in written


def test_pipes_get_records_as_they_are(filled: str) -> None:
    assert piped("consume evil -e", filled).stdout == EVIL


def test_errors_cannot_control_the_terminal(filled: str) -> None:
    words = [sys.executable, "-m", "kctl", "topics", "describe", "a\x1b[2Jb\x07", "-b", filled]
    shown = run_on_terminal(words)
    assert shown.exit_code == 1
    assert "\x1b[2J" not in shown.written
    assert "\x07" not in shown.written
    assert "x1b[2Jb" in shown.written


def test_json_values_are_highlighted_by_consume(filled: str) -> None:
    shown = on_terminal("consume orders -e -n 1", filled)
    assert '\x1b[36m"id"\x1b[0m: \x1b[33m' in shown.written
    assert json.loads(shown.lines[0])["paid"] is True
    assert not on_terminal("consume orders -e -n 1 --color never", filled).has_color


def test_row_options_apply_to_every_format(filled: str, kctl: Kctl) -> None:
    def run(*args: str) -> str:
        result = kctl(*args, "-b", filled)
        assert result.exit_code == 0, result.stderr
        return result.output

    by_partition = ("--columns", "partition,leader", "--sort-by", "-partition")
    table = run("topics", "describe", "orders", *by_partition, "--no-headers")
    assert [text.split()[0] for text in table.splitlines()] == ["2", "1", "0"]
    rows = json.loads(run("topics", "describe", "orders", *by_partition, "-o", "json"))
    assert [list(row) for row in rows] == [["partition", "leader"]] * 3
    assert run("offsets", "orders", "-o", "name") == "orders:0\norders:1\norders:2\n"
    assert run("groups", "describe", "billing", "-o", "name") == "billing\n"
    csv = run("groups", "describe", "billing", "-o", "csv").splitlines()
    assert "time_lag_ms" in csv[0].split(",")
    records = run("consume", "orders", "-e", "-n", "1", "-o", "csv", "--columns", "offset,topic")
    assert records.splitlines()[0] == "offset,topic"


def test_records_are_neither_sorted_nor_reduced_to_columns(filled: str, kctl: Kctl) -> None:
    for option in (("--sort-by", "offset"), ("--columns", "offset")):
        result = kctl("consume", "orders", "-e", *option, "-b", filled)
        assert result.exit_code == 2
        assert option[0] in result.stderr


def test_progress_bar_has_no_colour_if_it_is_switched_off(filled: str) -> None:
    line = "perf produce load -n 3000 --throughput 2000 --color never"
    shown = on_terminal(line, filled, 100)
    assert "records" in shown.written
    assert not shown.has_color
