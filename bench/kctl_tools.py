"""kctl's commands beside Kafka's own tools, on the same Apache Kafka."""

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

Words = Callable[[int], Sequence[str]]
"""The words of a run, by its number: what creates something needs a new name each time."""


def run() -> Iterator[Comparison]:
    """Small questions, which are mostly start-up, then large ones."""
    with (
        tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory,
        running_kafka(Path(directory)) as kafka,
    ):
        prepare(kafka.bootstrap_servers)
        for question in QUESTIONS:
            yield compare(question, kafka.bootstrap_servers)


class Question(NamedTuple):
    """The same thing asked of both."""

    what: str
    ours: Words
    tool: str
    theirs: Words
    goal: float


QUESTIONS = [
    Question("topics list", lambda _: ["topics", "list"], TOPICS, lambda _: ["--list"], SMALL_GOAL),
    Question(
        "topics describe, 6 partitions",
        lambda _: ["topics", "describe", "small"],
        TOPICS,
        lambda _: ["--describe", "--topic", "small"],
        SMALL_GOAL,
    ),
    Question(
        "groups describe",
        lambda _: ["groups", "describe", "group-0"],
        GROUPS,
        lambda _: ["--describe", "--group", "group-0"],
        SMALL_GOAL,
    ),
    Question(
        "topics create",
        lambda number: ["topics", "create", f"ours-{number}", "-p", "6"],
        TOPICS,
        lambda number: ["--create", "--topic", f"theirs-{number}", "--partitions", "6"],
        SMALL_GOAL,
    ),
    Question(
        f"topics describe, {MANY_PARTITIONS:,} partitions",
        lambda _: ["topics", "describe", "large"],
        TOPICS,
        lambda _: ["--describe", "--topic", "large"],
        LARGE_GOAL,
    ),
    Question(
        f"groups describe --all, {MANY_GROUPS} groups",
        lambda _: ["groups", "describe", "--all"],
        GROUPS,
        lambda _: ["--describe", "--all-groups"],
        LARGE_GOAL,
    ),
]


def prepare(servers: str) -> None:
    """Topics and groups to ask about; groups have read half of what there is."""
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


def compare(question: Question, servers: str) -> Comparison:
    """Both in turns, so that a busy machine is busy for both; a first round does not count."""
    ours, theirs = [], []
    for number in range(ROUNDS + 1):
        ours.append(_seconds(_kctl(servers, *question.ours(number))))
        words = question.theirs(number)
        theirs.append(_seconds(java_command(question.tool, "--bootstrap-server", servers, *words)))
    mine, kafkas = statistics.median(ours[1:]), statistics.median(theirs[1:])
    return Comparison(question.what, mine, kafkas, "Kafka's tool", "s", goal=question.goal)


def _kctl(servers: str, *words: str) -> list[str]:
    """kctl as a user starts it, a process each time."""
    return [sys.executable, "-m", "kctl", *words, "-b", servers]


def _seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - start
