"""`kctl replicas list`, `topics describe` and `cluster` while replicas differ."""

import shlex
from typing import Any

import pytest

from kctl.docs.tree import walk_commands
from tests.support.cluster import Cluster, wait_until
from tests.support.kctl import run_kctl

EXAMPLES = [
    example
    for command in walk_commands()
    if command.path[1:2] == ("cluster",)
    for example in command.examples
    if "-z localhost:2181/kafka" in example
]
"""Those that need a ZooKeeper; test_cluster_commands.py runs the others."""


def kctl(cluster: Cluster, *args: str) -> Any:
    result = run_kctl("-b", cluster.bootstrap_servers, *args, "-o", "json")
    assert result.exit_code == 0, result.stderr
    return result.json


def replicas(cluster: Cluster, topic: str) -> dict[int, dict[str, Any]]:
    return {row["broker"]: row for row in kctl(cluster, "replicas", "list", topic)}


def watermarks(cluster: Cluster, topic: str) -> set[int]:
    return {row["high_watermark"] for row in replicas(cluster, topic).values()}


def create(cluster: Cluster, topic: str) -> None:
    kctl(cluster, "topics", "create", topic, "--replica-assignment", "1:2:3")
    # Brokers get UpdateMetadata one after the other: some may not know the topic yet.
    wait_until(lambda: is_known(cluster, topic), f"every broker knows {topic}")


def is_known(cluster: Cluster, topic: str) -> bool:
    """Whether every live broker has the topic in its metadata."""
    addresses = [cluster.address(broker) for broker in cluster.live_brokers()]
    answers = [run_kctl("-b", address, "topics", "describe", topic) for address in addresses]
    return all(answer.exit_code == 0 for answer in answers)


def produce(cluster: Cluster, topic: str, count: int, acks: str = "all") -> None:
    lines = "".join(f"{number}\n" for number in range(count))
    args = ("produce", topic, "--acks", acks)
    result = run_kctl("-b", cluster.bootstrap_servers, *args, stdin=lines)
    assert result.exit_code == 0, result.stderr


def test_every_replica_reports_its_own_offsets(shared_cluster: Cluster) -> None:
    create(shared_cluster, "seen")
    produce(shared_cluster, "seen", 10)
    wait_until(lambda: watermarks(shared_cluster, "seen") == {10}, "HW reaches the followers")
    rows = replicas(shared_cluster, "seen")
    assert {broker: row["role"] for broker, row in rows.items()} == {
        1: "leader",
        2: "follower",
        3: "follower",
    }
    for row in rows.values():
        assert row["status"] == "isr" and row["in_isr"]
        assert (row["log_start_offset"], row["log_end_offset"], row["lag"]) == (0, 10, 0)
        assert row["size_bytes"] > 0


def test_hung_follower_is_listed_without_offsets_and_others_are_shown(
    shared_cluster: Cluster,
) -> None:
    create(shared_cluster, "hung")
    produce(shared_cluster, "hung", 5)
    with shared_cluster.paused(3):
        result = run_kctl(
            *("-b", shared_cluster.address(1), "--timeout", "6"),
            *("replicas", "list", "hung", "-o", "json"),
        )
        assert result.exit_code == 4, result.stderr
        assert "broker 3" in result.stderr
        rows = {row["broker"]: row for row in result.json}
        assert rows[3]["log_end_offset"] is None
        assert "unanswered" in rows[3]["status"]
        assert rows[1]["log_end_offset"] == 5
    wait_until(lambda: set(shared_cluster.isr("hung")) == {1, 2, 3}, "all replicas are in sync")


def test_dead_follower_is_out_of_sync_and_its_partition_is_marked(shared_cluster: Cluster) -> None:
    create(shared_cluster, "dead")
    shared_cluster.kill(1)
    wait_until(lambda: shared_cluster.isr("dead") == [2, 3], "broker 1 leaves the ISR")
    # The brokers learn of it from the controller, a little later than ZooKeeper.
    for broker in (2, 3):
        words = ("-b", shared_cluster.address(broker), "replicas", "list", "dead", "-o", "json")
        wait_until(
            lambda: run_kctl(*words).json[0]["status"] == "osr,offline",  # noqa: B023 - used here
            f"broker {broker} knows that broker 1 is offline and out of sync",
        )
    only = run_kctl(
        *("-b", shared_cluster.bootstrap_servers, "replicas", "list", "dead"),
        *("--out-of-sync", "-o", "json"),
    )
    assert [row["broker"] for row in only.json] == [1]
    assert kctl(shared_cluster, "replicas", "list", "dead", "--broker", "1") == only.json
    shared_cluster.start(1)
    wait_until(lambda: set(shared_cluster.isr("dead")) == {1, 2, 3}, "all replicas are in sync")

    def described() -> tuple[int, bool, list[int]]:
        (topic,) = kctl(shared_cluster, "topics", "describe", "dead")
        (partition,) = topic["partitions"]
        return partition["leader"], partition["preferred_leader"], partition["osr"]

    # Here too the brokers learn of it a little later than ZooKeeper.
    wait_until(lambda: described() == (2, False, []), "broker 2 leads a complete ISR")
    kctl(shared_cluster, "elect-leaders", "dead", "--yes")
    wait_until(lambda: shared_cluster.leader("dead") == 1, "broker 1 leads again")


def test_cluster_shows_the_epoch_of_the_controller_and_its_time(shared_cluster: Cluster) -> None:
    found = kctl(shared_cluster, "cluster", "describe", "-z", shared_cluster.zookeeper)
    assert found["controller_id"] == shared_cluster.controller_id()
    assert found["controller_epoch"] == shared_cluster.znode("/controller_epoch")
    assert found["controller_since"].endswith("Z")
    unknown = kctl(shared_cluster, "cluster", "describe")
    assert unknown["controller_epoch"] is None


def test_bad_selections_are_clear_errors(shared_cluster: Cluster) -> None:
    servers = ("-b", shared_cluster.bootstrap_servers)
    missing = run_kctl(*servers, "replicas", "list", "nope")
    assert (missing.exit_code, "no such topic: 'nope'" in missing.stderr) == (1, True)
    create(shared_cluster, "there")
    broker = run_kctl(*servers, "replicas", "list", "there", "--broker", "9")
    assert (broker.exit_code, "no such broker: 9" in broker.stderr) == (1, True)
    assert "the cluster has brokers 1, 2, 3" in broker.stderr


def test_brokers_are_selected(shared_cluster: Cluster) -> None:
    create(shared_cluster, "picked")
    rows = kctl(shared_cluster, "replicas", "list", "picked", "--broker", "2", "--broker", "3")
    assert [row["broker"] for row in rows] == [2, 3]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(shared_cluster: Cluster, example: str) -> None:
    placed = example.replace("localhost:9092", shared_cluster.bootstrap_servers)
    words = shlex.split(placed.replace("localhost:2181/kafka", shared_cluster.zookeeper))
    result = run_kctl(*words[1:])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.output
