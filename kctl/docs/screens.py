"""`python -m kctl.docs.screens`: SVG pictures of the main commands on a terminal.

Each screen shows a few command lines, run against a broker started for it, on a pseudo-terminal, so
that colours and widths are real. The output differs from run to run (times, ids), so no test
compares it; a test checks that the README includes every picture.
"""

import io
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kctl.commands.demo import ORDERS, ORDERS_FILE, running_broker

DIRECTORY = Path("docs") / "screens"
WIDTH = 110
SHOWN_PORT = "19092"
"""Replaces the port of the broker; of the same length, so that columns keep their width."""
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
    "kctl topics create orders --partitions 3 --config retention.ms=604800000",
    "kctl topics create payments audit --partitions 2",
    "kctl produce orders {files}/orders.txt --key-separator :",
    "kctl consume orders --group billing --exit",
    "kctl produce orders {files}/orders.txt --key-separator :",
    "kctl produce payments {files}/orders.txt --transactional-id till-1",
)
"""Commands that prepare the broker; not shown."""

SCREENS = (
    Screen("help", "kctl", ("kctl --help",)),
    Screen("cluster", "kctl cluster, kctl brokers", ("kctl cluster", "kctl brokers list")),
    Screen(
        "topics",
        "kctl topics",
        (
            "kctl topics list",
            "kctl topics describe orders -o wide",
            "kctl topics delete audit --dry-run",
            "kctl configs describe topic:orders",
        ),
    ),
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
            "kctl groups reset-offsets billing --topic orders --to-earliest",
        ),
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
        "zk",
        "kctl zk",
        (
            "kctl zk tree /brokers/topics/orders --directory {data}",
            "kctl zk get /brokers/topics/orders/partitions/0/state --directory {data}",
        ),
    ),
    Screen(
        "dump-log",
        "kctl dump-log",
        ("kctl dump-log {data}/orders-0", "kctl dump-log check {data}"),
    ),
)
"""Screens of a stopped broker's files."""


def main(root: Path) -> None:
    """Write every screen below `root`."""
    with tempfile.TemporaryDirectory(prefix="kctl-screens-") as text:
        directory = Path(text)
        (directory / ORDERS_FILE).write_text(ORDERS)
        with running_broker(directory) as address:
            for line in PREPARATION:
                run_line(line, directory, address)
            for screen in SCREENS:
                write_screen(root, screen, directory, address)
        for screen in AFTERWARDS:
            write_screen(root, screen, directory, address)


def write_screen(root: Path, screen: Screen, directory: Path, address: str) -> None:
    """Run the lines of one screen and write its picture."""
    parts = []
    for line in screen.lines:
        output = run_line(line, directory, address)
        shown = line.format(files="~", data="/var/lib/kctl")
        parts.append(f"\x1b[1m$ {shown}\x1b[0m\n{output}".rstrip())
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.from_ansi("\n\n".join(parts)), overflow="fold")
    picture = console.export_svg(title=screen.title, code_format=PAGE, unique_id=screen.name)
    target = root / DIRECTORY / f"{screen.name}.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(line.rstrip() for line in picture.splitlines()) + "\n")


def run_line(line: str, directory: Path, address: str) -> str:
    """The output of a command line on a terminal, with the paths of this run replaced."""
    placed = line.format(files=directory, data=directory / "data")
    command, _, source = placed.partition(" < ")
    words = [sys.executable, "-m", "kctl", *shlex.split(command)[1:]]
    text = _on_terminal(words, {"KCTL_BOOTSTRAP_SERVERS": address}, source)
    usual = {
        str(directory / "data"): "/var/lib/kctl",
        str(directory): "~",
        address.rpartition(":")[2]: SHOWN_PORT,
    }
    for found, shown in usual.items():
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
    environment = os.environ | {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"} | environ
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


if __name__ == "__main__":
    main(Path())
