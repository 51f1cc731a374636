"""`kctl events`, `topics watch` and `zk watch` see what happens to a cluster."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kctl.docs.tree import walk_commands
from tests.support.cluster import Cluster, wait_until
from tests.support.kctl import run_kctl

EXAMPLES = [
    example
    for command in walk_commands()
    if command.path[1:] in [("events",), ("zk", "watch")]
    for example in command.examples
]


@contextmanager
def following(*args: str) -> Iterator["subprocess.Popen[str]"]:
    """kctl in the background, after it has begun to follow."""
    words = [sys.executable, "-m", "kctl", *args, "-o", "jsonl"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until(process: "subprocess.Popen[str]", kind: str, subject: str) -> list[dict[str, Any]]:
    """The events up to the first one of this kind about this subject."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(json.loads(line))
        if (seen[-1]["event"], seen[-1]["subject"]) == (kind, subject):
            return seen
    raise AssertionError(f"no {kind} of {subject} among {seen}")


def begun(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    assert "changes from now on" in process.stderr.readline()


def test_events_tell_the_story_of_a_killed_leader(shared_cluster: Cluster) -> None:
    servers = ("-b", shared_cluster.bootstrap_servers)
    place = ("-z", shared_cluster.zookeeper, "--interval", "0.2")
    with following(*servers, "events", *place) as process:
        begun(process)
        made = run_kctl(*servers, "topics", "create", "story", "--replica-assignment", "1:2:3")
        assert made.exit_code == 0, made.stderr
        assert until(process, "topic-created", "story")[-1]["after"] == 1
        shared_cluster.kill(1)
        first = last = until(process, "leader", "story-0")[-1]
        if last["after"] is None:  # seen before the controller has elected another
            last = until(process, "leader", "story-0")[-1]
            assert last["before"] is None
        assert (first["before"], last["after"]) == (1, 2)
        until(process, "isr-shrunk", "story-0")
        shared_cluster.start(1)
        back = until(process, "isr-expanded", "story-0")
        assert 1 in back[-1]["after"]
    wait_until(lambda: set(shared_cluster.isr("story")) == {1, 2, 3}, "all replicas are in sync")


def test_topics_watch_shows_only_its_topics(shared_cluster: Cluster) -> None:
    servers = ("-b", shared_cluster.bootstrap_servers)
    for name in ("mine", "other"):
        assert run_kctl(*servers, "topics", "create", name, "-p", "1").exit_code == 0
    watching = ("topics", "watch", "mine", "--interval", "0.2", "-n", "1")
    with following(*servers, *watching) as process:
        begun(process)
        for name in ("other", "mine"):
            assert run_kctl(*servers, "topics", "delete", name, "--yes").exit_code == 0
        (event,) = until(process, "topic-deleted", "mine")
        assert event["before"] == 1
        assert process.wait(30) == 0


def test_zk_watch_sees_data_and_children(shared_cluster: Cluster) -> None:
    servers = ("-b", shared_cluster.bootstrap_servers)
    with following("zk", "watch", "/brokers/topics", "-z", shared_cluster.zookeeper) as process:
        until(process, "node", "/brokers/topics")
        assert run_kctl(*servers, "topics", "create", "child").exit_code == 0
        seen = until(process, "child-added", "/brokers/topics")
        assert seen[-1]["after"] == "child"
    with following(
        *("zk", "watch", "/brokers/topics/child", "-n", "1"), *("-z", shared_cluster.zookeeper)
    ) as process:
        until(process, "node", "/brokers/topics/child")
        assert run_kctl(*servers, "topics", "alter", "child", "-p", "2", "--yes").exit_code == 0
        until(process, "node-data", "/brokers/topics/child")
        assert process.wait(30) == 0


def test_limits_and_bad_input(shared_cluster: Cluster) -> None:
    servers = ("-b", shared_cluster.bootstrap_servers)
    short = run_kctl(*servers, "events", "--for", "300ms", "--interval", "0.1", "-o", "jsonl")
    assert short.exit_code == 0
    for words, message in (
        (("events", "-o", "csv"), "cannot be shown as csv"),
        (("events", "--for", "soon"), "is not a duration"),
        (("topics", "watch", "nope"), "no such topic"),
        (("zk", "watch", "a//b", "-z", shared_cluster.zookeeper), "a//b"),
    ):
        result = run_kctl(*servers, *words)
        assert result.exit_code in (1, 2), words
        assert message in result.stderr


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(shared_cluster: Cluster, example: str) -> None:
    """For a short time: that they see changes is proved above."""
    words = shlex.split(example)[1:]
    if "-z" in words:
        words[words.index("-z") + 1] = shared_cluster.zookeeper
    result = run_kctl("-b", shared_cluster.bootstrap_servers, *words, "--for", "1s")
    assert result.exit_code == 0, result.stderr
    if words[0] == "zk":
        assert words[2] in result.output.splitlines()[0]  # the present state
    else:
        assert "changes from now on" in result.stderr
