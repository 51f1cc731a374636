"""Reassignments during an incident: dead brokers, closed terminals, interrupted runs."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kctl.admin import reassignments
from kctl.model.reassignments import Stall
from kctl.operations.reassignment import runner
from kctl.plans.reassignment import stalls
from kctl.views.reassignments import stall_text
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.reassignments import SETTINGS, Run, fill, kctl_on, make, plan_file, replicas_of
from tests.support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.zk, pytest.mark.timeout(120)]

RATE_CONFIGS = {"leader.replication.throttled.rate", "follower.replication.throttled.rate"}


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Three brokers of ours."""
    directory = tmp_path_factory.mktemp("cluster")
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(directory, chroot, settings=SETTINGS) as running:
        yield running


@pytest.fixture
def run(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """kctl on the cluster, in a directory of its own; all brokers are up."""
    monkeypatch.chdir(tmp_path)
    with kctl_on(cluster) as run:
        yield run
        for broker in {1, 2, 3} - cluster.servers.keys():
            cluster.start(broker)
        wait_until(lambda: cluster.live_brokers() == [1, 2, 3], "all brokers are up")


@contextmanager
def started(cluster: Cluster, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`kctl reassign run` as a process that has begun its first batch."""
    command = [sys.executable, "-m", "kctl", "reassign", "run", *words, "--yes"]
    with subprocess.Popen(
        [*command, "-b", cluster.bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        seen = []
        for line in process.stderr:
            seen.append(line)
            if line.startswith("batch 1/"):
                break
        else:
            raise AssertionError("".join(seen))
        yield process
        if process.poll() is None:
            process.kill()


def throttled_brokers(cluster: Cluster) -> set[int]:
    """Brokers with both rates in their dynamic configs."""
    configs = {broker: cluster.znode(f"/config/brokers/{broker}") or {} for broker in (1, 2, 3)}
    return {b for b, node in configs.items() if node.get("config", {}).keys() >= RATE_CONFIGS}


@pytest.mark.parametrize("is_registered", [True, False])
def test_dead_broker_is_drained_with_a_throttle(
    run: Run, cluster: Cluster, is_registered: bool
) -> None:
    topic = f"drained-{is_registered}"
    make(run, topic, "1:3,3:2,2:1,3:1")
    fill(cluster, topic, 4, 2)
    dead = 3 if cluster.controller_id() != 3 else 2
    others = {1, 2, 3} - {dead}
    cluster.kill(dead)
    if not is_registered:
        wait_until(lambda: cluster.live_brokers() == sorted(others), "its session has expired")
    # Quotas let ten seconds' worth of bytes through at once: the first rate is low enough for the
    # batch to be still in progress when the rate is raised, the second one lets all of it through.
    rate, batch_size = ("1MB", "2") if is_registered else ("50kB", "4")
    with started(
        cluster, "--drain", str(dead), "--throttle", rate, "--batch-size", batch_size
    ) as process:
        wait_until(lambda: throttled_brokers(cluster) == others, "the others are throttled")
        if not is_registered:
            raised = run("throttle", "set", "20MB", "--yes")
            assert raised.exit_code == 0, raised.stderr
        _, messages = process.communicate(timeout=90)
    assert process.returncode == 0, messages
    assert re.search(r"\nmoved \d partitions, .* in .*; throttle removed\n$", messages), messages
    assert not [replicas for replicas in replicas_of(run, topic) if dead in replicas]
    assert run("throttle", "list", "-o", "json").json == []
    cluster.start(dead)
    assert run("throttle", "list", "-o", "json").json == []


def test_plan_is_executed_with_a_throttle_while_a_broker_is_dead(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    make(run, "executed", "1:3")
    fill(cluster, "executed", 1)
    cluster.kill(3)
    wait_until(lambda: cluster.live_brokers() == [1, 2], "its session has expired")
    plan = plan_file(tmp_path / "plan.json", {("executed", 0): [1, 2]})
    result = run("reassign", "execute", plan, "--throttle", "20MB", "--yes")
    assert result.exit_code == 0, result.stderr
    assert "broker 3 is not in the cluster" in result.stderr
    assert "its throttle is not set" in result.stderr
    assert throttled_brokers(cluster) == {1, 2}
    wait_until(lambda: run("reassign", "list", "-o", "json").json == [], "it is complete")
    assert run("reassign", "verify", plan, "--clear-throttles").exit_code == 0
    assert run("throttle", "list", "-o", "json").json == []


def test_destination_that_does_not_answer_is_not_left_without_a_throttle(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reassignments, "SIZES_S", 0.3)
    controller = wait_until(cluster.controller_id, "there is a controller")
    other, target = sorted({1, 2, 3} - {controller})
    make(run, "refused", f"{other}:{controller}")
    words = ("--brokers", f"{controller},{target}", "--throttle", "5MB", "--timeout", "5", "--yes")
    awake = f"{cluster.address(controller)},{cluster.address(other)}"
    with cluster.paused(target):
        result = run("reassign", "run", "refused", *words, "-b", awake)
    assert result.exit_code == 4, result.stderr
    assert f"cannot set the throttle: broker {target}" in result.stderr
    wait_until(lambda: cluster.live_brokers() == [1, 2, 3], "all brokers are up")
    assert throttled_brokers(cluster) == set()
    assert run("reassign", "list", "-o", "json").json == []


def test_stalled_run_names_the_broker_that_is_behind_and_ends_with_a_summary(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = threading.Event()

    def noticed(stall: Stall) -> str:
        seen.set()
        return stall_text(stall)

    monkeypatch.setattr(reassignments, "SIZES_S", 0.3)
    monkeypatch.setattr(stalls, "STALL_S", 2.0)
    monkeypatch.setattr(runner, "stall_text", noticed)
    controller = wait_until(cluster.controller_id, "there is a controller")
    other, target = sorted({1, 2, 3} - {controller})
    make(run, "stalled", f"{other}:{controller}")
    fill(cluster, "stalled", 1)
    awake = f"{cluster.address(controller)},{cluster.address(other)}"
    words = ("--brokers", f"{controller},{target}", "--interval", "0.2", "-b", awake, "--yes")

    def resume() -> None:
        seen.wait(60)
        os.kill(cluster.servers[target].process.pid, signal.SIGCONT)

    with cluster.paused(target):
        thread = threading.Thread(target=resume)
        thread.start()
        result = run("reassign", "run", "stalled", *words)
        thread.join()
    assert result.exit_code == 0, result.stderr
    state = rf"broker {target} (does not answer|is down) and holds up 1 partition: stalled-0"
    assert re.search(rf"no progress for \d+s: {state}\n", result.stderr)
    assert re.search(r"moved 1 partition, [\d.]+ [kM]B in ", result.stderr.splitlines()[-1])


@pytest.fixture
def slow_move(run: Run, cluster: Cluster, request: pytest.FixtureRequest) -> list[str]:
    """The arguments of a run that takes a minute; its topic is the first."""
    topic = "slow-" + re.sub(r"\W+", "-", request.node.name)
    make(run, topic, "2:1,2:1")
    fill(cluster, topic, 2, 4)
    return [topic, "--brokers", "1,3", "--throttle", "100kB"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_takes_the_moves_back_and_removes_the_throttle(
    run: Run, cluster: Cluster, slow_move: list[str], number: signal.Signals
) -> None:
    with started(cluster, *slow_move) as process:
        assert throttled_brokers(cluster) == {1, 2, 3}
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert run("reassign", "list", "-o", "json").json == []
    assert throttled_brokers(cluster) == set()
    assert replicas_of(run, slow_move[0]) == [[2, 1], [2, 1]]


def test_closed_terminal_takes_the_moves_back_and_removes_the_throttle(
    run: Run, cluster: Cluster, slow_move: list[str]
) -> None:
    command = [sys.executable, "-m", "kctl", "reassign", "run", *slow_move, "--yes"]
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [*command, "-b", cluster.bootstrap_servers])  # noqa: S606
    try:
        wait_until(lambda: throttled_brokers(cluster) == {1, 2, 3}, "the throttle is set")
        wait_until(lambda: run("reassign", "list", "-o", "json").json, "replicas are moving")
    finally:
        os.close(terminal)  # as sshd does when the connection breaks
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert run("reassign", "list", "-o", "json").json == []
    assert throttled_brokers(cluster) == set()
    assert replicas_of(run, slow_move[0]) == [[2, 1], [2, 1]]


def test_run_that_leaves_its_moves_keeps_their_throttle(
    run: Run, cluster: Cluster, slow_move: list[str]
) -> None:
    with started(cluster, *slow_move, "--on-interrupt", "leave") as process:
        process.send_signal(signal.SIGHUP)
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert throttled_brokers(cluster) == {1, 2, 3}
    assert len(run("reassign", "list", "-o", "json").json) == 2
    command = messages.partition("remove it with: ")[2].splitlines()[0]
    assert run("throttle", "set", "100MB", "--yes").exit_code == 0
    wait_until(lambda: run("reassign", "list", "-o", "json").json == [], "it is complete", 60)
    assert run(*command.split()[1:], "--yes").exit_code == 0
    assert throttled_brokers(cluster) == set()
    assert run("throttle", "list", "-o", "json").json == []
