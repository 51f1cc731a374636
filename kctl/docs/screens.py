"""`python -m kctl.docs.screens`: SVG pictures of the main commands on a terminal.

Each screen shows a few command lines on a pseudo-terminal, so that colours and widths are real.
They run against three brokers started for this. The output differs from run to run (times, ids),
so no test compares it; a test checks that the README includes every picture.

Look at them in other widths and on a light background before committing them:

    python -m kctl.docs.screens --width 80 --light --to /tmp/screens
"""

import asyncio
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from kctl.admin.broker_counters import MetricsEndpoint
from kctl.cli.options import Session
from kctl.commands.demo import ORDERS, ORDERS_FILE
from kctl.top.pages import View
from kctl.top.sampler import Source

DIRECTORY = Path("docs") / "screens"
WIDTH = 110
TOP_LINES = 16
SHOWN_PORTS = ("19092", "19093", "19094", "12181")
"""Replace the ports of the brokers and of ZooKeeper; of the same length, to keep columns aligned.
"""
_POLLS = 60
_CHUNK = 65536
_CONTROL = re.compile(r"\n|\r|\x1b\[(?P<count>\d*)(?P<code>[AK])|\x1b\[\?\d+[hl]")
"""Escape sequences that move the cursor or clear lines, as progress bars do; not colours."""

# Rich's template without web fonts.
PAGE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Fira Code, DejaVu Sans Mono, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass(frozen=True)
class Screen:
    """A picture: its file name, title and command lines."""

    name: str
    title: str
    lines: tuple[str, ...]


PREPARATION = (
    "kctl topics create orders --partitions 6 --config retention.ms=604800000",
    "kctl topics create payments --partitions 3",
    "kctl topics create clicks --partitions 4 --replication-factor 2",
    "kctl topics create load --partitions 3",
    "kctl produce orders {files}/orders.txt --key-separator :",
    "kctl consume orders --group billing --exit",
    "kctl produce orders {files}/more.txt --key-separator :",
    "kctl produce payments {files}/orders.txt --transactional-id till-1",
    "kctl perf produce clicks -n 60000 -s 500",
)
"""Commands that prepare the cluster; not shown."""

SCREENS = (
    Screen("help", "kctl", ("kctl --help",)),
    Screen("cluster", "kctl cluster, kctl brokers", ("kctl cluster -o tree", "kctl brokers list")),
    Screen(
        "records",
        "kctl produce, kctl consume",
        (
            "kctl produce orders {files}/orders.txt --key-separator : -o wide",
            "kctl consume orders --from -1 --exit --format '%t-%p@%o %T{{iso}} %k = %s\\n'",
            "kctl consume orders -n 1 --exit -o jsonl",
        ),
    ),
    Screen(
        "groups",
        "kctl groups",
        (
            "kctl groups describe billing",
            "kctl groups describe billing --totals --fail-if 'lag>1'",
            "kctl groups describe checkout -o tree",
            "kctl groups reset-offsets billing --topic orders --to-earliest",
        ),
    ),
    Screen(
        "reassign",
        "kctl reassign",
        ("kctl reassign plan clicks --drain 3", "kctl log-dirs --by broker"),
    ),
    Screen(
        "transactions",
        "kctl transactions",
        (
            "kctl transactions list",
            "kctl transactions describe --all",
            "kctl transactions producers payments",
            "kctl transactions hanging",
        ),
    ),
    Screen("perf", "kctl perf", ("kctl perf produce load -n 100000 --acks 1",)),
    Screen(
        "zk",
        "kctl zk",
        (
            "kctl zk tree /brokers/topics/orders",
            "kctl zk get /brokers/topics/orders/partitions/0/state",
        ),
    ),
    Screen(
        "errors",
        "When something is wrong",
        (
            "kctl topics describe oders",
            "kctl topics delete orders < /dev/null",
            "kctl brokers list -b localhost:1",
            "kctl groups describe billing --lag",
        ),
    ),
)
AFTERWARDS = (
    Screen(
        "topics",
        "kctl topics, with broker 3 down",
        (
            "kctl health",
            "kctl topics list",
            "kctl topics describe orders -o wide",
            "kctl topics alter orders --config retention.ms=3600000 --dry-run",
            "kctl configs describe topic:orders",
        ),
    ),
    Screen(
        "dump-log",
        "kctl dump-log",
        ("kctl dump-log {data}/orders-0", "kctl dump-log check {data}"),
    ),
)
"""Screens after broker 3 was killed."""

TOP_SCREENS = {"top-brokers": "1", "top": "2", "top-partitions": "3", "top-groups": "4"}
"""Pictures of `kctl top`, and the keys that open these views."""

LIGHT = TerminalTheme(
    (255, 255, 255),
    (40, 40, 40),
    [
        *((0, 0, 0), (192, 28, 40), (38, 162, 105), (162, 115, 76)),
        *((18, 72, 139), (163, 71, 186), (42, 161, 179), (207, 207, 207)),
    ],
)
"""The palette of a common terminal on white, to see whether the colours can be read there."""


@dataclass(frozen=True)
class Looks:
    """Where and how pictures are made."""

    target: Path
    width: int = WIDTH
    theme: TerminalTheme | None = None


@dataclass(frozen=True)
class Place:
    """The cluster that the screens show."""

    directory: Path
    """Files that commands read."""
    brokers: Path
    """The directory of `kctl dev`."""
    environ: dict[str, str]
    endpoints: tuple[MetricsEndpoint, ...]
    """Admin ports."""
    usual: dict[str, str]
    """Text of this run, and what is shown instead, of the same length where columns depend on it.
    """


def main(looks: Looks) -> None:
    """Make every picture."""
    with tempfile.TemporaryDirectory(prefix="kctl-screens-") as text, _cluster(Path(text)) as place:
        for line in PREPARATION:
            run_line(line, place, looks.width)
        with _member(place):
            for screen in SCREENS:
                write_screen(screen, place, looks)
            with _load(place):
                asyncio.run(write_top(place, looks))
        _dev(place.brokers, "kill", "3")
        _wait_for(place, '"under_replicated": 6')
        for screen in AFTERWARDS:
            write_screen(screen, place, looks)


@contextmanager
def _cluster(directory: Path) -> Iterator[Place]:
    """Three brokers of `kctl dev`."""
    (directory / ORDERS_FILE).write_text(ORDERS)
    (directory / "more.txt").write_text("".join(f'k{n}:{{"id": {n}}}\n' for n in range(40)))
    brokers = directory / "kctl"
    quick = ("--set", "group.initial.rebalance.delay.ms=0", "--set", "default.replication.factor=3")
    try:
        _dev(brokers, "up", "--brokers", "3", "--port", "0", *quick)
        status = json.loads(_dev(brokers, "status", "-o", "json"))
        addresses = [one["address"] for one in status]
        ports = {a.rpartition(":")[2]: SHOWN_PORTS[at] for at, a in enumerate(addresses)}
        yield Place(
            directory,
            brokers,
            {"KCTL_BOOTSTRAP_SERVERS": ",".join(addresses[:3]), "KCTL_ZOOKEEPER": addresses[3]},
            tuple(MetricsEndpoint(f"{one['admin']}/metrics", one["id"]) for one in status[:3]),
            {str(brokers / "broker"): "/var/lib/kctl", str(directory): "~", **ports},
        )
    finally:
        _dev(brokers, "down", "--delete-data")


def _dev(brokers: Path, *words: str) -> str:
    command = [sys.executable, "-m", "kctl", "dev", *words, "--dir", str(brokers)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


@contextmanager
def _member(place: Place) -> Iterator[None]:
    """A member of the group `checkout`, which reads until the block ends."""
    words = [sys.executable, "-m", "kctl", "consume", "orders", "payments", "-g", "checkout"]
    process = subprocess.Popen(  # noqa: S603 - words of this module
        words, stdout=subprocess.DEVNULL, env=os.environ | place.environ
    )
    try:
        _wait_for(place, '"client_id"', "groups", "describe", "checkout", "--members")
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _load(place: Place) -> Iterator[None]:
    """Records are written while the block runs."""
    words = ("perf", "produce", "clicks", "-n", "1000000", "--throughput", "1000")
    process = subprocess.Popen(  # noqa: S603 - words of this module
        [sys.executable, "-m", "kctl", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | place.environ,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _wait_for(place: Place, text: str, *words: str) -> None:
    """Return when the JSON of a command, by default `topics list`, contains `text`."""
    command = [sys.executable, "-m", "kctl", *(words or ("topics", "list")), "-o", "json"]
    for _ in range(_POLLS):
        answer = subprocess.run(  # noqa: S603 - words of this module
            command, capture_output=True, text=True, check=False, env=os.environ | place.environ
        )
        if text in answer.stdout:
            return
        time.sleep(1)
    raise TimeoutError(text)


def write_screen(screen: Screen, place: Place, looks: Looks) -> None:
    """Run the lines of one screen and write its picture."""
    parts = []
    for line in screen.lines:
        output = run_line(line, place, looks.width)
        shown = line.format(files="~", data="/var/lib/kctl-1/data")
        parts.append(f"\x1b[1m$ {shown}\x1b[0m\n{output}".rstrip())
    console = Console(record=True, width=looks.width, file=io.StringIO())
    console.print(Text.from_ansi("\n\n".join(parts)), overflow="fold")
    picture = console.export_svg(
        title=screen.title, code_format=PAGE, unique_id=screen.name, theme=looks.theme
    )
    target = looks.target / f"{screen.name}.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(line.rstrip() for line in picture.splitlines()) + "\n")


async def write_top(place: Place, looks: Looks) -> None:
    """The pictures of `kctl top`, while records are written."""
    from kctl.top.app import TopApp  # imported here: other pictures do not need Textual

    servers = place.environ["KCTL_BOOTSTRAP_SERVERS"]
    session = Session(bootstrap_server=servers, timeout=4.0, given={"bootstrap_server"})
    app = TopApp(Source(session, "dev", 1.0, 30.0, list(place.endpoints)), View.TOPICS, [])
    async with app.run_test(size=(looks.width, TOP_LINES)) as pilot:
        for _ in range(_POLLS):
            await pilot.pause(0.2)
        for name, key in TOP_SCREENS.items():
            await pilot.press(key)
            await pilot.pause(0.2)
            picture = app.export_screenshot(title="kctl top")
            # Without web fonts, like the other pictures.
            picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
            lines = [line.rstrip() for line in picture.splitlines()]
            (looks.target / f"{name}.svg").write_text("\n".join([*lines, ""]))


def run_line(line: str, place: Place, width: int) -> str:
    """The output of a command line on a terminal, with the paths of this run replaced."""
    data = place.brokers / "broker-1" / "data"
    command, _, source = line.format(files=place.directory, data=data).partition(" < ")
    words = [sys.executable, "-m", "kctl", *shlex.split(command)[1:]]
    text = _on_terminal(words, place.environ | {"COLUMNS": str(width)}, source)
    for found, shown in place.usual.items():
        text = text.replace(found, shown)
    return settled(text)


def settled(text: str) -> str:
    """The final contents of the terminal."""
    lines = [""]
    row = start = 0
    for control in _CONTROL.finditer(text):
        lines[row] += text[start : control.start()]
        start = control.end()
        if control[0] == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif control["code"] == "K":
            lines[row] = ""
        elif control["code"] == "A":
            row = max(0, row - int(control["count"] or 1))
    lines[row] += text[start:]
    return "\n".join(lines).rstrip()


def _on_terminal(words: list[str], environ: dict[str, str], source: str) -> str:
    """Run a command on a pseudo-terminal; `source` is its stdin."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color"} | environ
    with Path(source or os.devnull).open() as stdin:
        process = subprocess.Popen(  # noqa: S603 - lines of this module
            words, stdin=stdin, stdout=theirs, stderr=theirs, env=environment
        )
    os.close(theirs)
    chunks = []
    try:
        while chunk := os.read(ours, _CHUNK):
            chunks.append(chunk)
    except OSError:
        pass  # raised when the other end of the terminal is closed
    os.close(ours)
    process.wait()
    return b"".join(chunks).decode(errors="replace")


def _arguments() -> Looks:
    parser = ArgumentParser(prog="python -m kctl.docs.screens")
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--to", type=Path, default=DIRECTORY)
    found = parser.parse_args()
    return Looks(found.to, found.width, LIGHT if found.light else None)


if __name__ == "__main__":
    main(_arguments())
