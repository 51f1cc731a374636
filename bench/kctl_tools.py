"""kctl's commands compared with Kafka's own tools, on the same Apache Kafka."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.report import Comparison
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.group_offsets import commit_offsets
from tests.support.real_kafka import java_command, running_kafka

TOPICS = "org.apache.kafka.tools.TopicCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ROUNDS = 5
MANY_PARTITIONS = 2000
MANY_GROUPS = 500
SMALL_GOAL = 0.35
LARGE_GOAL = 1.0

Arguments = Callable[[int], Sequence[str]]
"""Arguments of a run, by its number: commands that create something need a new name each time."""


def run() -> Iterator[Comparison]:
    """Compare small commands, which are mostly start-up time, then large ones."""
    with (
        tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory,
        running_kafka(Path(directory)) as kafka,
    ):
        prepare(kafka.bootstrap_servers)
        for case in CASES:
            yield compare(case, kafka.bootstrap_servers)


class Case(NamedTuple):
    """The same command for both tools."""

    what: str
    ours: Arguments
    tool: str
    theirs: Arguments
    goal: float


CASES = [
    Case("topics list", lambda _: ["topics", "list"], TOPICS, lambda _: ["--list"], SMALL_GOAL),
    Case(
        "topics describe, 6 partitions",
        lambda _: ["topics", "describe", "small"],
        TOPICS,
        lambda _: ["--describe", "--topic", "small"],
        SMALL_GOAL,
    ),
    Case(
        "groups describe",
        lambda _: ["groups", "describe", "group-0"],
        GROUPS,
        lambda _: ["--describe", "--group", "group-0"],
        SMALL_GOAL,
    ),
    Case(
        "topics create",
        lambda number: ["topics", "create", f"ours-{number}", "-p", "6"],
        TOPICS,
        lambda number: ["--create", "--topic", f"theirs-{number}", "--partitions", "6"],
        SMALL_GOAL,
    ),
    Case(
        f"topics describe, {MANY_PARTITIONS:,} partitions",
        lambda _: ["topics", "describe", "large"],
        TOPICS,
        lambda _: ["--describe", "--topic", "large"],
        LARGE_GOAL,
    ),
    Case(
        f"groups describe --all, {MANY_GROUPS} groups",
        lambda _: ["groups", "describe", "--all"],
        GROUPS,
        lambda _: ["--describe", "--all-groups"],
        LARGE_GOAL,
    ),
]


def prepare(servers: str) -> None:
    """Create topics and groups to describe; the groups have committed half of each log."""
    large = ["large", "-p", str(MANY_PARTITIONS), "--timeout", "120"]
    _seconds(_kctl(servers, "topics", "create", "small", "-p", "6"))
    _seconds(_kctl(servers, "topics", "create", *large))
    _seconds(_kctl(servers, "perf", "produce", "small", "-n", "60000", "-s", "100"))
    asyncio.run(_commit(servers))


async def _commit(servers: str) -> None:
    offsets = {TopicPartition("small", partition): 5000 for partition in range(6)}
    async with Client(servers) as client:
        for number in range(MANY_GROUPS):
            outcomes = await commit_offsets(client, f"group-{number}", offsets)
            assert not any(outcomes.values()), outcomes


def compare(case: Case, servers: str) -> Comparison:
    """Run both in turns, so that other load affects both; the first round is a warm-up."""
    ours, theirs = [], []
    for number in range(ROUNDS + 1):
        ours.append(_seconds(_kctl(servers, *case.ours(number))))
        arguments = case.theirs(number)
        theirs.append(_seconds(java_command(case.tool, "--bootstrap-server", servers, *arguments)))
    mine, kafkas = statistics.median(ours[1:]), statistics.median(theirs[1:])
    return Comparison(case.what, mine, kafkas, "Kafka's tool", "s", goal=case.goal)


def _kctl(servers: str, *arguments: str) -> list[str]:
    """Command line of kctl, started as a new process each time as users do."""
    return [sys.executable, "-m", "kctl", *arguments, "-b", servers]


def _seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - start
