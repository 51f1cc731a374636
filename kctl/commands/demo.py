"""`kctl demo` (`make demo`): a tour of what there is, on a broker started for it.

The tour is a list of stops; every feature worth seeing adds one. Commands are run as a user would
run them, in processes of their own, so that what the tour shows is what one gets.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from kctl.dev.launch import start_broker, stop_process, wait_until_started
from kctl.errors import ExitStatus
from kctl.groups import command, lone_command
from kctl.options import session_of
from kctl.output import Output

app = lone_command()


@dataclass(frozen=True)
class Stop:
    """One stop of the tour: what is to be seen, and the command lines that show it."""

    title: str
    commands: tuple[str, ...]


ORDERS_FILE = "orders.txt"
ORDERS = "anna:3 apples\nben:1 pear\ncleo:12 plums\ndan:2 figs\n"

TOUR = [
    Stop("Who is in the cluster?", ("kctl cluster", "kctl brokers list")),
    Stop(
        "Which requests does the broker understand? (USED is what kctl speaks with it)",
        ("kctl api-versions",),
    ),
    Stop(
        "Make a topic, write records to it, and read them: as text, and with all there is to them",
        (
            "kctl topics create orders --partitions 3",
            "kctl produce orders {files}/orders.txt --key-separator : -o wide",
            "kctl topics describe orders",
            "kctl consume orders --from -2 --exit --format '%t-%p@%o %k = %s\\n'",
            "kctl consume orders --exit -n 1 -o jsonl",
        ),
    ),
    Stop(
        "A group reads; how far is it, and what if it must read again?",
        (
            "kctl consume orders --group billing --exit",
            "kctl produce orders {files}/orders.txt --key-separator :",
            "kctl groups describe billing",
            "kctl groups describe billing --totals --fail-if 'lag>1'",
            "kctl groups reset-offsets billing --topic orders --to-earliest",
        ),
    ),
    Stop(
        "The same records in the broker's own files",
        ("kctl dump-log show {data}/orders-0",),
    ),
    Stop(
        "Whole topics as tables: Parquet, written by Spark (which takes some seconds to start)",
        (
            "kctl spark-export orders --to {files}/table",
            "kctl spark-export verify {files}/table",
        ),
    ),
    Stop(
        "Records that are written together or not at all; who has written so?",
        (
            "kctl produce orders {files}/orders.txt --key-separator : --transactional-id till-1",
            "kctl transactions list",
            "kctl transactions producers orders",
        ),
    ),
    Stop(
        "How fast is it?",
        (
            "kctl perf produce load --num-records 100000 --acks 1",
            "kctl perf consume load --num-records 100000",
        ),
    ),
    Stop("The same for programs: every command has -o json", ("kctl brokers list -o json",)),
    Stop(
        "And in Kafka's own words, for scripts that expect them",
        ("kctl cluster id --format kafka",),
    ),
    Stop(
        "When something is wrong, kctl says what, and what to do",
        ("kctl topics describe oders", "kctl brokers list -b localhost:1"),
    ),
]


@command(app, "demo", examples=["kctl demo"])
def demo(ctx: typer.Context) -> None:
    """Tour kctl on a broker of its own."""
    out = session_of(ctx).out
    with tempfile.TemporaryDirectory(prefix="kctl-demo-") as directory:
        (Path(directory) / ORDERS_FILE).write_text(ORDERS)
        started = time.monotonic()
        with running_broker(Path(directory)) as address:
            milliseconds = 1000 * (time.monotonic() - started)
            _title(
                out, f"A broker is listening on {address}, {milliseconds:.0f} ms after its start"
            )
            for stop in TOUR:
                _title(out, stop.title)
                for line in stop.commands:
                    _show(out, _placed(line, Path(directory)), address)
    _title(out, "The broker has stopped, and its files are gone. That was the tour")


def _placed(line: str, directory: Path) -> str:
    """The command line with the tour's own directories in it."""
    return line.replace("{files}", str(directory)).replace("{data}", str(directory / "data"))


@contextmanager
def running_broker(directory: Path) -> Iterator[str]:
    """A broker on a free port with its files in `directory`; yields `host:port`."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": directory / "data",
        "group.initial.rebalance.delay.ms": 0,
    }
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    log_file = directory / "broker.log"
    process = start_broker(overrides, log_file)
    try:
        yield wait_until_started(process, log_file)
    finally:
        stop_process(process)


def _title(out: Output, title: str) -> None:
    out.lines([""])
    out.heading(f"── {title}")


def _show(out: Output, line: str, address: str) -> None:
    out.lines(["", f"$ {line}"])
    sys.stdout.flush()  # what follows is written by another process
    environ = {**os.environ, "KCTL_BOOTSTRAP_SERVERS": address, "KCTL_OUTPUT": "table"}
    words = [sys.executable, "-m", "kctl", *shlex.split(line)[1:]]
    status = subprocess.run(words, env=environ, stderr=subprocess.STDOUT).returncode  # noqa: S603
    if status != ExitStatus.OK:
        out.lines([f"(exit status {status})"])
