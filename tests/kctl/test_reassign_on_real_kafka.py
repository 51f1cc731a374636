"""Reassignments, throttles, elections and replicas on three Apache brokers, compared with its
tools.
"""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.assignment import assign_replicas
from kctl.cli.arguments.plan_files import parse_reassignment, reassignment_json
from kctl.cli.errors import CliError
from kctl.operations.reassignment import runner
from tests.kctl.test_reassign_on_cluster import ReassignmentContract
from tests.support.kctl import Kctl, KctlResult
from tests.support.real_kafka import RealKafka, running_kafka
from tests.support.reassignments import SETTINGS, Run, fill, kctl_on, make, plan_file, replicas_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
SLOW = "2000"
"""Bytes a second at which LARGE comes to no end while a test looks: a megabyte in 11 seconds."""
LARGE = 12


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """Three brokers of Apache Kafka."""
    with running_kafka(tmp_path_factory.mktemp("three"), 3, SETTINGS) as running:
        yield running


@pytest.fixture
def run(cluster: RealKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """kctl on the cluster, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    with kctl_on(cluster) as run:
        yield run


class TestOnApacheKafka(ReassignmentContract):
    """The contract, held up to Apache Kafka."""


def theirs(cluster: RealKafka, tool: str, *args: str) -> subprocess.CompletedProcess[str]:
    return cluster.tool(tool, "--bootstrap-server", cluster.bootstrap_servers, *args)


def same_words(
    run: Run, cluster: RealKafka, their_args: list[str], our_args: list[str]
) -> list[str]:
    """Run both: they print the same, but for the stack trace below Java's errors. The lines."""
    their_run = theirs(cluster, REASSIGN, *their_args)
    ours = run("reassign", *our_args, "--format", "kafka")
    lines = their_run.stdout.splitlines()
    if lines[0].startswith("Error: "):
        lines = lines[:1]
    assert ours.output.splitlines() == lines, ours.stderr
    assert ours.exit_code == their_run.returncode
    return lines


def test_generated_plan_is_one_that_kafka_could_have_made(
    run: Run, cluster: RealKafka, tmp_path: Path
) -> None:
    make(run, "gen", "1:2,2:3,3:1,1:3,2:1")
    topics = tmp_path / "topics.json"
    topics.write_text('{"version":1,"topics":[{"topic":"gen"}]}')
    words = ["--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3"]
    their_lines = theirs(cluster, REASSIGN, "--generate", *words).stdout.splitlines()
    ours = run("reassign", "plan", "--generate", *words, "--format", "kafka")
    lines = ours.output.splitlines()
    assert lines[:4] == their_lines[:4]
    racks: dict[int, str | None] = dict.fromkeys((1, 2, 3), "r")
    possible = [
        assign_replicas(racks, 5, 2, start_index=start, replica_shift=shift)
        for start in range(3)
        for shift in range(3)
    ]
    for text in (lines[4], their_lines[4]):
        proposed = parse_reassignment(text, "generated").replicas
        assert list(proposed.values()) in possible
        assert reassignment_json(proposed) == text


def test_execute_list_verify_and_cancel_texts_equal_kafkas_tool(
    run: Run, cluster: RealKafka, tmp_path: Path
) -> None:
    make(run, "aaa", "1:2,2:3")
    make(run, "bbb", "1:2,2:3")
    fill(cluster, "aaa", 2, LARGE)
    fill(cluster, "bbb", 2, LARGE)
    plans = {
        name: plan_file(tmp_path / f"{name}.json", {(name, 0): [3, 2], (name, 1): [2, 1]})
        for name in ("aaa", "bbb")
    }
    started = theirs(
        cluster, REASSIGN, "--execute", "--reassignment-json-file", plans["aaa"], "--throttle", SLOW
    )
    refused = ["--execute", "--reassignment-json-file", plans["bbb"]]
    same_words(run, cluster, refused, ["execute", plans["bbb"], "--yes"])
    ours = run(
        *["reassign", "execute", plans["bbb"], "--throttle", SLOW, "--additional", "--yes"],
        *["--format", "kafka", "--rollback", "back.json"],
    )
    assert ours.output == started.stdout.replace("aaa", "bbb")
    assert json.loads(Path("back.json").read_text())["partitions"][0]["replicas"] == [1, 2]
    listed = same_words(run, cluster, ["--list"], ["list"])
    assert len(listed) == 5
    for plan in plans.values():
        words = ["--reassignment-json-file", plan]
        verified = same_words(run, cluster, ["--verify", *words], ["verify", *words])
        assert sum("still in progress" in line for line in verified) == 2
    theirs_off = theirs(cluster, REASSIGN, "--cancel", "--reassignment-json-file", plans["aaa"])
    ours_off = run("reassign", "cancel", "--file", plans["bbb"], "--yes", "--format", "kafka")
    assert ours_off.output == theirs_off.stdout.replace("aaa", "bbb")
    words = ["--reassignment-json-file", plans["bbb"]]
    same_words(run, cluster, ["--cancel", *words], ["cancel", *words, "--yes"])
    same_words(run, cluster, ["--verify", *words], ["verify", *words])
    same_words(run, cluster, ["--list"], ["list"])


def test_texts_of_completed_and_invalid_plans_equal_kafkas_tool(
    run: Run, cluster: RealKafka, tmp_path: Path
) -> None:
    make(run, "done", "1:2")
    good = plan_file(tmp_path / "good.json", {("done", 0): [1, 2]})
    same_words(
        run,
        cluster,
        ["--verify", "--reassignment-json-file", good],
        ["verify", good],
    )
    bad_plans: dict[str, dict[tuple[str, int], list[int]]] = {
        "unknown": {("done", 0): [1, 9]},
        "twice": {("done", 0): [1, 1]},
        "empty": {("done", 0): []},
        "nothing": {},
        "no-topic": {("nope", 0): [1, 2]},
        "no-partition": {("done", 7): [1, 2]},
    }
    for name, replicas in bad_plans.items():
        bad = plan_file(tmp_path / f"{name}.json", replicas)
        lines = same_words(
            run,
            cluster,
            ["--execute", "--reassignment-json-file", bad],
            ["execute", bad, "--yes"],
        )
        assert lines[0].startswith("Error: ")


def test_elections_text_equals_kafkas_tool(run: Run, cluster: RealKafka, tmp_path: Path) -> None:
    make(run, "elect", "1:2,2:3,3:1")
    reordered = plan_file(
        tmp_path / "order.json",
        {("elect", 0): [2, 1], ("elect", 1): [3, 2], ("elect", 2): [3, 1]},
    )
    assert run("reassign", "run", "--file", reordered, "--yes").exit_code == 0
    shown = run("elect-leaders", "--all", "--dry-run", "-o", "json").json
    assert [(row["partition"], row["leader"], row["elects"]) for row in shown] == [
        (0, 1, 2),
        (1, 2, 3),
    ]
    for words in (
        ["--topic", "elect", "--partition", "0"],
        ["--topic", "elect", "--partition", "2"],
        ["--topic", "nope", "--partition", "0"],
    ):
        both = ["--election-type", "preferred", *words]
        assert run("elect-leaders", *both, "--yes", "--format", "kafka").output
        # Whatever needed an election has had it, so the tool now says what we say.
        expected = theirs(cluster, ELECT, *both)
        ours = run("elect-leaders", *both, "--yes", "--format", "kafka")
        assert (ours.output, ours.exit_code) == (expected.stdout, expected.returncode)
    by_broker = run("elect-leaders", "--broker", "3", "--yes", "-o", "json").json
    assert by_broker == [{"partition": "elect-1", "status": "elected"}]
    again = run("elect-leaders", "elect", "--yes")
    # The broker that is asked may not have heard of the last election yet.
    assert "no election is needed" in again.stderr or "not needed" in again.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_rolls_back_and_removes_its_throttle(
    run: Run, cluster: RealKafka, number: signal.Signals
) -> None:
    topic = f"stopped-{number.name}"
    make(run, topic, "2:1,2:1")
    fill(cluster, topic, 2, LARGE)
    command = [sys.executable, "-m", "kctl", "reassign", "run", topic, "--brokers", "1,3"]
    options = ["--throttle", SLOW, "--yes", "--rollback", "back.json"]
    with subprocess.Popen(
        [*command, *options, "-b", cluster.bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("batch 1/1"):
                break
        assert run("throttle", "list", "-o", "json").json
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert run("reassign", "list", "-o", "json").json == []
    assert run("throttle", "list", "-o", "json").json == []
    assert replicas_of(run, topic) == [[2, 1], [2, 1]]


def test_failed_run_removes_its_throttle(
    run: Run, cluster: RealKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(run, "failing", "2:1")
    fill(cluster, "failing", 1, LARGE)

    async def fail(_client: object) -> None:
        raise CliError("the cluster is gone")

    monkeypatch.setattr(runner, "_poll", fail)
    words = ["--brokers", "1,3", "--throttle", SLOW, "--interval", "0.05", "--yes"]
    result = run("reassign", "run", "failing", *words)
    assert (result.exit_code, "the cluster is gone" in result.stderr) == (1, True)
    assert run("throttle", "list", "-o", "json").json == []
    assert run("reassign", "cancel", "failing", "--yes").exit_code == 0


def test_throttle_can_be_changed_during_a_move_and_leaks_are_listed(
    run: Run, cluster: RealKafka, tmp_path: Path
) -> None:
    make(run, "slow", "2:1")
    fill(cluster, "slow", 1, LARGE)
    plan = plan_file(tmp_path / "plan.json", {("slow", 0): [3, 1]})
    assert run("reassign", "execute", plan, "--throttle", SLOW, "--yes").exit_code == 0
    (row,) = run("reassign", "list", "-o", "json").json
    assert (row["adding"], row["removing"]) == ([3], [2])
    assert not any(row["leaked"] for row in run("throttle", "list", "-o", "json").json)
    assert run("reassign", "verify", plan).exit_code == 3
    assert run("throttle", "set", "100MB", "--yes").exit_code == 0
    deadline = time.monotonic() + 60
    while run("reassign", "verify", plan).exit_code == 3 and time.monotonic() < deadline:
        assert run("throttle", "list", "-o", "json").json
    leaked = run("throttle", "list", "--leaked", "-o", "json")
    assert leaked.exit_code == 3
    assert {row["leaked"] for row in leaked.json} == {True}
    assert run("reassign", "verify", plan, "--clear-throttles").exit_code == 0
    assert run("throttle", "list", "--leaked", "-o", "json").json == []


def test_log_dir_move_texts_equal_kafkas_tool(
    kctl: Kctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = tmp_path / "one", tmp_path / "two"
    with running_kafka(tmp_path, 1, {"log.dirs": f"{one},{two}"}) as lone:
        env = {"KCTL_BOOTSTRAP_SERVERS": lone.bootstrap_servers}

        def run(*args: str) -> KctlResult:
            return kctl(*args, env=env)

        assert run("topics", "create", "theirs", "ours").exit_code == 0
        plans = {}
        for name in ("theirs", "ours"):
            here = one if (one / f"{name}-0").exists() else two
            entry: dict[str, object] = {"topic": name, "partition": 0, "replicas": [1]}
            entry["log_dirs"] = [str(two if here == one else one)]
            plans[name] = tmp_path / f"{name}.json"
            plans[name].write_text(json.dumps({"version": 1, "partitions": [entry]}))
        words = ["--reassignment-json-file", str(plans["ours"])]
        same_words(run, lone, ["--verify", *words], ["verify", *words])
        rate = ["--replica-alter-log-dirs-throttle", "1000000"]
        mine = run("reassign", "execute", *words, *rate, "--yes", "--format", "kafka")
        their_words = ["--reassignment-json-file", str(plans["theirs"]), *rate]
        expected = theirs(lone, REASSIGN, "--execute", *their_words).stdout
        assert _without_dirs(mine.output, "ours") == _without_dirs(expected, "theirs")
        deadline = time.monotonic() + 30
        while run("reassign", "verify", *words).exit_code == 3:
            assert time.monotonic() < deadline
        verified = same_words(run, lone, ["--verify", *words], ["verify", *words])
        assert "Reassignment of replica ours-0-1 completed successfully." in verified


def _without_dirs(text: str, name: str) -> str:
    return re.sub(r"directory to \S+", "directory to D", text.replace(name, "t"))
