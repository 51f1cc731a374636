"""No command line ends in an internal error: the whole command tree, with values of every kind.

Commands, options and the types of their values are read from Typer itself, so a new command is
covered as soon as it exists. Values are plausible ones, the limits of integers, and noise; the
cluster is a real broker that the commands may change at will. `KCTL_EXAMPLES=50` runs more than
10,000 command lines.
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from typer.core import TyperArgument, TyperGroup
from typer.main import get_command

from kctl.app import app
from kctl.cli.command_tree import LazyGroup
from kctl.cli.errors import ExitStatus
from kctl.cli.options import shared_parameters
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import KctlResult, run_kctl

pytestmark = pytest.mark.timeout(1800)

STARTS_SERVERS = {("dev", "up"), ("dev", "start"), ("demo",), ("spark-export", "run")}
"""Commands that start servers or a JVM: minutes per example."""

BOUNDS: dict[tuple[str, ...], list[str]] = {
    ("consume",): ["--exit"],
    ("groups", "watch"): ["--count", "1", "--interval", "0.1", "--window", "0.1"],
    ("perf", "produce"): ["-n", "5", "--throughput", "-1"],
    ("perf", "consume"): ["-n", "5", "--idle", "0.2"],
    ("perf", "latency"): ["-n", "2"],
    ("elect-leaders",): ["--pause", "0"],
    ("reassign", "run"): ["--interval", "0.1"],
    ("monitor", "run"): ["--once", "--no-history"],
    ("dev", "logs"): ["--dir", "nowhere"],
    ("spark-export", "verify"): ["--master", "nowhere"],
}
"""Options added to commands that otherwise run until they are interrupted."""

LIMIT_S = 10.0
"""After this, a command line is interrupted like with Ctrl-C."""

NUMBERS = [0, 1, 2, 7, -1, -3, 2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 99999999999, 10**30]
TEXTS = [
    *("orders", "ord.*", "orders:0", "orders:99999999999", "orders:a", "orders:0-2", "nosuch", ""),
    *("billing", "billing:orders:0", "__consumer_offsets", "topic:orders", "broker:1", "brokers"),
    *("broker:99999999999", "retention.ms=1", "retention.ms=x", "retention.ms", "=", "k:a", "v:("),
    *(
        "h:a=b",
        "x" * 300,
        "a.b",
        "a_b",
        "ä\u202eß",
        "\udcff\udcfe",
        "(",
        "[",
        "*",
        "%",
        "\\",
    ),
    *("%k %s", "%T{iso}", "%X", "kafka", "1,2", "1,,2", "1:2,2:1", "99999999999", "1:99999999999"),
    *("-1", "1e9", "nan", "inf", "10MB", "1d", "P1D", "PT", "-15m", "-99999999999999d", "now"),
    *("@0", "@99999999999999999999", "100:200", "@-2h:@-1h", "+99999999999999999999", "latest"),
    *("2026-11-01", "9999-12-31T23:59Z", "0001-01-01", "lag>0", "lag > 99999999999999999999999"),
    *("time-lag>1h", "Stable", "Ongoing", "localhost:1/x", "127.0.0.1:1", "/brokers", "/a/../b"),
    *("{}", "null", '{"partitions": 1}', "key", "\n", "linger.ms=x", "no.such.setting=1"),
]
FILES = {
    "empty": b"",
    "binary.log": bytes(range(256)) * 8,
    "text": b"not json\n",
    "list.json": b"[]",
    "object.json": b"{}",
    "plan.json": b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1]}]}',
    "huge.json": b'{"partitions":[{"topic":"orders","partition":99999999999,"replicas":[1e99]}]}',
    "odd.json": b'{"partitions":[{"topic":null,"partition":"x","offset":-9e99,"replicas":"1"}]}',
    "topics.json": b'{"version":1,"topics":[{"topic":"orders"},{}]}',
    "offsets.csv": b"billing,orders,0,99999999999999999999\n",
    "client.properties": b"security.protocol=PLAINTEXT\nacks=all\n",
    "bad.properties": b"security.protocol=NONSENSE\n",
}
PATHS = [*FILES, "missing/file", "directory", "-", "/dev/null", "/dev/full", "/proc/1/x", "\udcff"]

Path_ = tuple[str, ...]


def leaves(command: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every command that does something, with its words."""
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    for name, child in command.commands.items():
        real = command.load(name) if isinstance(command, LazyGroup) else child
        yield from leaves(real, (*path, name))


COMMANDS = {
    path: command
    for path, command in leaves(get_command(app))
    if not STARTS_SERVERS & {path[:1], path[:2]}
}
SHARED = {parameter.name for parameter in shared_parameters()}

# The kernel passes no NUL in a command line.
noise = st.text(st.characters(exclude_characters="/\0", exclude_categories=()), max_size=12)
texts = st.sampled_from(TEXTS) | noise
numbers = st.sampled_from(NUMBERS).map(str)


def values(parameter: Any) -> st.SearchStrategy[str]:
    """Values for a parameter, mostly of its type."""
    kind = type(parameter.type).__name__
    if kind == "TyperChoice":
        choices = [str(getattr(choice, "value", choice)) for choice in parameter.type.choices]
        return st.sampled_from([*choices, "nonsense"])
    if kind.startswith("Int"):
        return numbers | st.sampled_from(["1", "2", "x"])
    if kind.startswith("Float"):
        return numbers | st.sampled_from(["0.1", "1", "nan", "inf", "-inf"])
    if kind == "TyperPath":
        return st.sampled_from(PATHS)
    return texts


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """One command with some of its options, and with its arguments."""
    path = draw(st.sampled_from(sorted(COMMANDS)))
    own = [p for p in COMMANDS[path].params if p.name not in SHARED | {"help"}]
    options = [p for p in own if not isinstance(p, TyperArgument)]
    words: list[str] = list(path)
    chosen = draw(st.lists(st.sampled_from(options), max_size=4)) if options else []
    for option in chosen:
        name = draw(st.sampled_from([*option.opts, *option.secondary_opts]))
        words.append(name if option.is_flag else f"{name}{draw(separators(name))}")
        if not option.is_flag:
            words[-1:] = _joined(words[-1], draw(values(option)))
    words += draw(shared_words)
    words += BOUNDS.get(path, [])
    if any(option.opts and "--yes" in option.opts for option in options):
        words.append("--yes")
    arguments = [p for p in own if isinstance(p, TyperArgument)]
    if arguments:
        words.append("--")
    for argument in arguments:
        most = 3 if argument.nargs == -1 else 1
        words += draw(st.lists(values(argument), min_size=int(argument.required), max_size=most))
    return words


def separators(name: str) -> st.SearchStrategy[str]:
    return st.just("=") if name.startswith("--") else st.just("")


def _joined(name: str, value: str) -> list[str]:
    return [name + value] if name.endswith("=") else [name, value]


shared_words = st.sampled_from(
    [
        *([[]] * 8),
        *([["-o", form] for form in ("wide", "json", "jsonl", "yaml", "csv", "name", "tree")]),
        ["--columns", "topic"],
        ["--columns", "nosuch,", "-o", "csv"],
        ["--sort-by", "-topic"],
        ["--no-headers", "--color", "always"],
        ["--command-config", "client.properties"],
        ["--command-config", "bad.properties"],
        ["--command-config", "binary.log"],
        ["--context", "nosuch"],
        ["-b", "127.0.0.1:1"],
        ["-b", "nonsense"],
        ["-b", "a:99999999"],
        ["-b", "a..b:9092"],
        ["-b", "\x9b:9092"],
        ["--timeout", "0.01"],
        ["-v"],
    ]
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of the commands."""
    directory = tmp_path_factory.mktemp("place")
    (directory / "directory").mkdir()
    return directory


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    limits = {"num_partitions": 2, "group_initial_rebalance_delay_ms": 0}
    with running_broker(tmp_path_factory.mktemp("broker"), **limits) as running:
        run_kctl("topics", "create", "orders", "-b", running.bootstrap_servers)
        yield running


@contextmanager
def interrupted_after(seconds: float) -> Iterator[threading.Event]:
    """Send this process SIGINT if the block takes longer; the event tells whether it was sent."""
    lock, is_over, is_sent = threading.Lock(), threading.Event(), threading.Event()

    def interrupt() -> None:
        with lock:
            if not is_over.is_set():
                is_sent.set()
                os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, interrupt)
    # Shells start background processes with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        yield is_sent
    finally:
        with lock:
            is_over.set()
        timer.cancel()
        signal.signal(signal.SIGINT, before)


def run_bounded(server: RunningBroker, place: Path, words: list[str]) -> KctlResult:
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    env = {
        "KCTL_BOOTSTRAP_SERVERS": server.bootstrap_servers,
        "KCTL_TIMEOUT": "2",
        "KCTL_CONFIG": str(place / "contexts.yaml"),
        "XDG_STATE_HOME": str(place / "state"),
        "COLUMNS": "80",
    }
    with interrupted_after(LIMIT_S) as was_interrupted:
        result = run_kctl(*words, stdin='{"value":"a"}\nb\n', env=env)
    if was_interrupted.is_set():
        discard_garbage()
    return result


def discard_garbage() -> None:
    """Collect what an interrupted command line left, without warnings of unclosed sockets.

    SIGINT can arrive while an event loop is being created or closed. All other command lines must
    close what they open.
    """
    before = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        gc.collect()
    finally:
        sys.unraisablehook = before


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(words=command_lines())
def test_no_command_line_ends_in_an_internal_error(
    server: RunningBroker, place: Path, words: list[str]
) -> None:
    note(" ".join(map(repr, words)))
    before = Path.cwd()
    os.chdir(place)
    try:
        result = run_bounded(server, place, words)
    finally:
        os.chdir(before)
    assert "internal error" not in result.stderr, result.stderr
    assert "Traceback" not in result.stderr or "-v" in words, result.stderr
    assert result.exit_code in set(ExitStatus), result.stderr
