"""Calls of Kafka's own tools, and their output without what differs between brokers."""

import re
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.support.real_kafka import java_command


class Step(NamedTuple):
    """One call of a tool."""

    name: str
    tool: str
    args: tuple[str, ...]


def step(name: str, tool: str, *args: str) -> Step:
    return Step(name, tool, args)


def run_tool(tool: str, address: str, *args: str) -> str:
    """What the tool printed, and its exit status."""
    done = subprocess.run(
        java_command(tool, "--bootstrap-server", address, *args, heap="128m"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    return f"{_comparable(done.stdout)}{_comparable(done.stderr)}exit {done.returncode}\n"


def _comparable(text: str) -> str:
    text = re.sub(r"127\.0\.0\.1:\d+", "<address>", text)
    text = re.sub(r"TopicId: \S{22}", "TopicId: <id>", text)
    text = re.sub(r'"logDir":"[^"]*"', '"logDir":"<dir>"', text)
    text = re.sub(r"^\[[\d: ,-]+\] ", "", text, flags=re.MULTILINE)  # the time of a log line
    lines = [line for line in text.splitlines() if not line.startswith(("\tat ", "\t... "))]
    return "".join(f"{line}\n" for line in lines)


def texts_on_both(
    steps: Iterable[Step], script: Callable[[str], list[str]], addresses: tuple[str, str]
) -> dict[str, tuple[str, str]]:
    """By step: what was printed on each broker; the scripts run at the same time."""
    with ThreadPoolExecutor() as threads:
        printed = threads.map(script, addresses)
        names = [step.name for step in steps]
        return dict(zip(names, zip(*printed, strict=True), strict=True))
