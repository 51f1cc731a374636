"""Runs the steps of console pages as a reader would, in a home directory and on ports of its own.

The ports of the pages (9092 and so on) are replaced by free ones of the same length. A plain kctl
command runs in this process, which is faster; every other line runs in one bash per page.
"""

import os
import random
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Final

from tests.docs.console_page import Block, Step
from tests.support.kctl import run_kctl

PATIENCE_S: Final = 60.0
"""How long a reading command is repeated."""
_SETTLE_S: Final = 1.0
"""How long --rewrite waits for the old output before it takes the new one."""
_POLL_S: Final = 0.1
_SHELL_SYNTAX: Final = re.compile(r"[|&;<>$`*\n\"']")
_EXPORT: Final = re.compile(r"export (\w+)=(\S+)$")
_CHUNK: Final = 65536
PAGE_PORTS: Final = (9092, 9093, 9094, 9095, 2181, 9192, 9193, 9194, 2182)
"""Ports in pages: brokers and ZooKeeper of the cluster that pages share, and of a page's own."""


class Shell:
    """One bash; `run` returns the lines that a command printed, and its exit status."""

    def __init__(self, directory: Path, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environ,
        )

    def run(self, line: str) -> tuple[list[str], int]:
        """Run a command to its end; `&` leaves it running."""
        assert self._process.stdin
        marker = f"end-{random.getrandbits(64):x}"
        script = f"{{ {line}\n}} < /dev/null\nprintf '{marker} %s\\n' $?\n"
        self._process.stdin.write(script.encode())
        self._process.stdin.flush()
        text = self._read_until(marker)
        output, _, status = text.rpartition(marker)
        return output.splitlines(), int(status)

    def _read_until(self, marker: str) -> str:
        assert self._process.stdout
        text, deadline = "", time.monotonic() + 2 * PATIENCE_S
        with DefaultSelector() as selector:
            selector.register(self._process.stdout, EVENT_READ)
            while not re.search(rf"{marker} \d+\n", text):
                assert selector.select(deadline - time.monotonic()), f"no end: {text}"
                chunk = os.read(self._process.stdout.fileno(), _CHUNK)
                assert chunk, f"bash ended: {text}"
                text += chunk.decode()
        return text

    def close(self) -> None:
        """End the jobs that are left, and bash."""
        self.run("kill $(jobs -p) 2> /dev/null; wait")
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Session:
    """A home directory, ports and environment variables; kept from page to page."""

    def __init__(self, home: Path, *, is_rewriting: bool) -> None:
        self.home = home
        self._is_rewriting = is_rewriting
        self._ports = dict(zip(PAGE_PORTS, _free_ports(len(PAGE_PORTS)), strict=True))
        self._exported = {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "KCTL_CONFIG": str(home / "config.yaml"),
            "LC_ALL": "C.UTF-8",  # the order of sort
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def run_blocks(self, blocks: Sequence[Block]) -> None:
        """Run all steps; those of --rewrite then have the outputs of this run."""
        with self._shell() as shell:
            for step in [step for block in blocks for step in block.steps]:
                self._run_step(step, shell)

    def run_page(self, blocks: Sequence[Block]) -> None:
        """As `run_blocks`; variables that the page exports are its own."""
        before = dict(self._exported)
        try:
            self.run_blocks(blocks)
        finally:
            self._exported = before

    @contextmanager
    def _shell(self) -> Iterator[Shell]:
        clean = {name: text for name, text in os.environ.items() if not name.startswith("KCTL_")}
        before = Path.cwd()
        os.chdir(self.home)  # plain commands run in this process
        shell = Shell(self.home, clean | self._exported)
        try:
            yield shell
        finally:
            os.chdir(before)
            shell.close()

    def _run_step(self, step: Step, shell: Shell) -> None:
        patience_s = _SETTLE_S if self._is_rewriting and not step.until else PATIENCE_S
        deadline = time.monotonic() + (patience_s if step.only_reads else 0)
        output = self._run(step.line, shell)
        while not self._is_done(step, output) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            output = self._run(step.line, shell)
        if step.matches(output):
            return
        assert self._is_rewriting, step.difference(output)
        assert not step.until or self._is_done(step, output), f"{step.line}: {output}"
        step.shown = output

    def _is_done(self, step: Step, output: list[str]) -> bool:
        if self._is_rewriting and step.until:
            return re.search(step.until, "\n".join(output), re.MULTILINE) is not None
        return step.matches(output)

    def _run(self, line: str, shell: Shell) -> list[str]:
        for port, own in self._ports.items():
            line = re.sub(rf"\b{port}\b", str(own), line)
        if exported := _EXPORT.match(line):
            self._exported[exported[1]] = exported[2]
        if line.startswith("kctl ") and not _SHELL_SYNTAX.search(line):
            words = [self._expanded(word) for word in shlex.split(line)[1:]]
            result = run_kctl(*words, env=self._exported)
            lines, status = result.everything.splitlines(), result.exit_code
        else:
            lines, status = shell.run(line)
        return self._as_on_the_page(lines, status)

    def _expanded(self, word: str) -> str:
        return f"{self.home}{word[1:]}" if word.startswith("~/") else word

    def _as_on_the_page(self, lines: list[str], status: int) -> list[str]:
        text = "\n".join(line.rstrip() for line in lines)
        for port, own in self._ports.items():
            text = re.sub(rf"\b{own}\b", str(port), text)
        text = text.replace(str(self.home), "~")
        return [*text.splitlines(), *([f"(exit status {status})"] if status else [])]


def _free_ports(count: int) -> list[int]:
    """Ports of four digits that follow each other; the kernel gives them to no client."""
    while True:
        first = random.randrange(6101, 8900)
        ports = list(range(first, first + count))
        if all(map(_is_free, ports)) and not any(port % 100 == 0 for port in ports):
            return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
