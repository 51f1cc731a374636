"""`kctl demo` (`make demo`): a tour of what there is, on a broker started for it.

The tour is a list of stops; every feature worth seeing adds one. Commands are run as a user would
run them, in processes of their own, so that what the tour shows is what one gets.
"""

import os
import re
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

from kctl.errors import CliError, ExitStatus
from kctl.groups import command, lone_command
from kctl.options import session_of
from kctl.output import Output

app = lone_command()

STARTED = re.compile(r"started broker\.id=\d+ listeners=\w+://([\w.]+:\d+)")
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30


@dataclass(frozen=True)
class Stop:
    """One stop of the tour: what is to be seen, and the command lines that show it."""

    title: str
    commands: tuple[str, ...]


TOUR = [
    Stop("Who is in the cluster?", ("kctl cluster", "kctl brokers list")),
    Stop(
        "Which requests does the broker understand? (USED is what kctl speaks with it)",
        ("kctl api-versions",),
    ),
    Stop("The same for programs: every command has -o json", ("kctl brokers list -o json",)),
    Stop(
        "And in Kafka's own words, for scripts that expect them",
        ("kctl cluster id --format kafka",),
    ),
    Stop(
        "When something is wrong, kctl says what, and what to do",
        ("kctl brokers list -b localhost:1",),
    ),
]


@command(app, "demo", examples=["kctl demo"])
def demo(ctx: typer.Context) -> None:
    """Tour kctl on a broker of its own."""
    out = session_of(ctx).out
    with tempfile.TemporaryDirectory(prefix="kctl-demo-") as directory:
        started = time.monotonic()
        with running_broker(Path(directory)) as address:
            milliseconds = 1000 * (time.monotonic() - started)
            _title(
                out, f"A broker is listening on {address}, {milliseconds:.0f} ms after its start"
            )
            for stop in TOUR:
                _title(out, stop.title)
                for line in stop.commands:
                    _show(out, line, address)
    _title(out, "The broker has stopped, and its files are gone. That was the tour")


@contextmanager
def running_broker(directory: Path) -> Iterator[str]:
    """A broker on a free port with its files in `directory`; yields `host:port`."""
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": directory / "data"}
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    log_file = directory / "broker.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "broker", *overrides], stdout=log, stderr=log
        )
    try:
        yield _bound_address(process, log_file)
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _bound_address(process: subprocess.Popen[bytes], log_file: Path) -> str:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := STARTED.search(log_file.read_text()):
            return found[1]
        time.sleep(0.01)
    raise CliError("the broker did not start", f"it said: {log_file.read_text()[-2000:]}")


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
