"""Runs the console blocks of a page and compares what they print with what the page shows.

A block holds commands, each after `$ `, with their output below. Parts that differ from run to run
(ports, times, ids, directories) are normalized before the comparison. With pytest's `--rewrite` the
page takes the output of this run.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.kctl import run_kctl
from tests.support.processes import free_port

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARIABLE = (
    (re.compile(r"\b(crc|found) \d{3,}"), "CRC"),
    (re.compile(r"\b(localhost|127\.0\.0\.1|kafka1):\d+"), "ADDRESS"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?( ?Z|\+00:00)?"), "TIME"),
    (re.compile(r"\b[\w-]{22}\b"), "ID"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|min|h)\b"), "DURATION"),
    (re.compile(r"\b1[67]\d{8,11}\b"), "MILLISECONDS"),
    (re.compile(r"\b\d+(\.\d+)? (B|KB|MB|KiB|MiB|GB)(/s)?"), "SIZE"),
    (re.compile(r"\b(process|pid) \d+"), "PROCESS"),
    (re.compile(r"\d{8}-\d{6}"), "NUMBER"),
    (re.compile(r"^batch \d+/\d+: .*\n", re.MULTILINE), ""),  # how often progress is shown varies
    (re.compile(r" +"), " "),
)
_READS = re.compile(r"kctl (\w+ (describe|list|verify)|consume|health)\b")
_SETTLED_S = 30
_SHELL = re.compile(r"[|&;<>$`*]|^(?!kctl )")


def normalized(text: str) -> list[str]:
    """The lines without what differs from run to run."""
    for pattern, name in _VARIABLE:
        text = pattern.sub(name, text)
    text = re.sub(r"\b\d(,\d)+\b", lambda found: ",".join(sorted(found[0].split(","))), text)
    return [line.strip() for line in text.splitlines() if line.strip()]


@dataclass
class PageSession:
    """The working directory, environment and background processes of one page."""

    directory: Path
    servers: str
    """Takes the place of localhost:9092."""
    zookeeper: str = ""
    """Takes the place of localhost:2181."""
    background: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def env(self) -> dict[str, str]:
        """Settings of kctl that belong to this page only."""
        own = {
            "KCTL_CONFIG": str(self.directory / "contexts.yaml"),
            "XDG_STATE_HOME": str(self.directory / "state"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "120",
        }
        return own | ({"KCTL_BOOTSTRAP_SERVERS": self.servers} if self.servers else {})

    def run(self, command: str) -> str:
        """The output of one command; a status other than 0 is its last line."""
        real = command.replace("localhost:9092", self.servers or "localhost:9092")
        real = real.replace("localhost:2181", self.zookeeper)
        if real.startswith("kctl dev up"):
            real += f" --port {free_port()}"
        if real.endswith("&"):
            self._start(real.rstrip("& "))
            return ""
        output, status = self._run(real)
        if real.startswith("kctl dev up"):
            self.servers = re.findall(r"^[\w.]+:\d+$", output, re.MULTILINE)[-1]
        output = self._as_shown(output)
        return output + (f"# exit status {status}\n" if status else "")

    def run_until(self, command: str, shown: str) -> str:
        """The output of one command; one that only reads is repeated until it prints `shown`.

        Other brokers learn of a change a moment later than the one that made it.
        """
        deadline = time.monotonic() + _SETTLED_S
        while True:
            found = self.run(command)
            is_settled = normalized(found) == normalized(shown) if shown else "error:" not in found
            if is_settled or not _READS.match(command) or time.monotonic() > deadline:
                return found
            time.sleep(0.2)

    def _as_shown(self, output: str) -> str:
        """The output with the addresses that a reader has."""
        if self.servers:
            first = self.servers.split(",")[0]
            output = output.replace(first.replace("127.0.0.1", "localhost"), "localhost:9092")
            output = output.replace(first, "localhost:9092").replace(
                first.rpartition(":")[2], "9092"
            )
        if self.zookeeper:
            output = output.replace(self.zookeeper, "localhost:2181")
        output = output.replace(f"{self.directory}/", "")
        return "\n".join(line.rstrip() for line in output.splitlines()) + "\n" if output else ""

    def _run(self, command: str) -> tuple[str, int]:
        if _SHELL.search(command) or " up" in command:
            done = subprocess.run(
                ["bash", "-c", command],
                env=_clean() | self.env(),
                cwd=self.directory,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=100,
            )
            return done.stdout, done.returncode
        before = Path.cwd()
        os.chdir(self.directory)
        try:
            result = run_kctl(*shlex.split(command)[1:], env=self.env())
        finally:
            os.chdir(before)
        return result.output + result.stderr, result.exit_code

    def _start(self, command: str) -> None:
        log = (self.directory / "background.log").open("wb")
        env = _clean() | self.env()
        with log:
            self.background.append(
                subprocess.Popen(  # its end is in `close`
                    shlex.split(command), env=env, cwd=self.directory, stdout=log, stderr=log
                )
            )

    def close(self) -> None:
        """Stop what the page started."""
        for process in self.background:
            process.terminate()
            process.wait(60)
        if (self.directory / "state").exists():
            self._run("kctl dev down 2>&1")


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("KCTL_")}


def run_page(page: Path, session: PageSession, *, rewrite: bool) -> None:
    """Run every command of the page in order; AssertionError if one prints something else."""
    text = page.read_text()
    differences: list[str] = []

    def run_block(block: re.Match[str]) -> str:
        lines: list[str] = []
        for part in re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found = session.run_until(command, shown)
            if normalized(shown) != normalized(found):
                differences.append(f"$ {command}\n--- page\n{shown}--- now\n{found}")
                shown = found
            lines.append(f"$ {command}\n{shown}")
        return "```console\n" + "".join(lines) + "```"

    fresh = _BLOCK.sub(run_block, text)
    if rewrite:
        page.write_text(fresh)
    else:
        assert not differences, f"{page.name}\n" + "\n".join(differences)


def needs(page: Path) -> str:
    """What the page's commands need, from its comment `<!-- run: … -->`."""
    found: Any = re.search(r"^<!-- run: (.*) -->$", page.read_text(), re.MULTILINE)
    assert found, f"{page.name} does not say what its commands need"
    return str(found[1])
