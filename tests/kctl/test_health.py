"""`kctl health`: each finding on a real cluster, and the rules that need no cluster."""

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from broker.errors import ErrorCode
from broker.net.client import Client
from kctl.admin import health
from kctl.admin.topics import find_topics
from kctl.model.cluster import Broker, Cluster
from kctl.model.health import ClusterState, Severity
from kctl.model.log_dirs import LogDir
from kctl.model.topics import Partition, Topic
from kctl.plans.health import findings
from tests.support import cluster as support
from tests.support.cluster import running_cluster, wait_until
from tests.support.kctl import run_kctl
from tests.support.zookeeper import ZooKeeper

LIVE = Cluster("c", 1, tuple(Broker(n, "h", 9092 + n, None) for n in (1, 2, 3)))


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[support.Cluster]:
    """Two brokers with a topic that needs both."""
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(tmp_path_factory.mktemp("cluster"), chroot, brokers=2) as running:
        made = run_kctl(
            *("topics", "create", "orders", "-p", "2", "--replication-factor", "2"),
            *("--config", "min.insync.replicas=2", "-b", running.bootstrap_servers),
        )
        assert made.exit_code == 0, made.stderr
        yield running


@pytest.mark.zk
@pytest.mark.timeout(120)
def test_dead_broker_is_found_and_wait_ends_when_it_is_back(cluster: support.Cluster) -> None:
    address = cluster.address(1)
    healthy = run_kctl("health", "--wait", "30", "-b", address)
    assert (healthy.exit_code, healthy.stderr) == (0, "no problems found\n")
    cluster.kill(2)
    wait_until(lambda: cluster.live_brokers() == [1], "its session has expired")

    def checks() -> list[tuple[str, str]]:
        found = run_kctl("health", "-o", "json", "-b", address)
        assert found.exit_code == 3, found.stderr
        return [(row["check"], row["subject"]) for row in found.json]

    expected = [
        ("broker-down", "broker 2"),
        ("under-min-isr", "topic orders"),
        ("under-replicated", "topic orders"),
    ]
    wait_until(lambda: checks() == expected, "all three are found")
    critical = run_kctl("health", "--critical", "-o", "json", "-b", address)
    assert [row["check"] for row in critical.json] == ["broker-down", "under-min-isr"]
    cluster.start(2)
    again = run_kctl("health", "--wait", "60", "-b", address)
    assert (again.exit_code, again.stderr) == (0, "no problems found\n")


@pytest.mark.zk
@pytest.mark.timeout(120)
def test_hung_broker_is_a_finding(cluster: support.Cluster) -> None:
    with cluster.paused(2):
        found = run_kctl("health", "-o", "json", "--timeout", "1", "-b", cluster.address(1))
    assert found.exit_code == 3, found.stderr
    first = found.json[0]
    assert (first["check"], first["subject"]) == ("broker-unavailable", "broker 2")
    assert "did not answer within 1 s" in first["message"]
    assert run_kctl("health", "--wait", "60", "-b", cluster.address(1)).exit_code == 0


@pytest.mark.zk
@pytest.mark.timeout(120)
def test_regression_broker_that_leaves_while_the_state_is_read_is_found(
    cluster: support.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is registered when the brokers are listed, and gone when log directories are queried."""
    client = AdminClient({"bootstrap.servers": cluster.address(1)})

    def kill() -> None:
        cluster.kill(2)
        wait_until(lambda: list(client.list_topics(timeout=10).brokers) == [1], "it has left")

    async def find_topics_and_kill(connected: Client) -> list[Topic]:
        topics = await find_topics(connected)
        if 2 in cluster.servers:
            await asyncio.to_thread(kill)
        return topics

    monkeypatch.setattr(health, "find_topics", find_topics_and_kill)
    found = run_kctl("health", "-o", "json", "-b", cluster.address(1))
    monkeypatch.undo()
    cluster.start(2)
    assert found.exit_code == 3, found.stderr
    assert ("broker-down", "broker 2") in [(row["check"], row["subject"]) for row in found.json]
    assert run_kctl("health", "--wait", "60", "-b", cluster.address(1)).exit_code == 0


def test_unreachable_cluster_is_one_error() -> None:
    found = run_kctl("health", "--timeout", "1", "-b", "127.0.0.1:1")
    assert found.exit_code in (1, 4)
    assert found.stderr.startswith("error: cannot reach the cluster")


def topic(*isrs: tuple[int, ...], leader: int | None = 1) -> Topic:
    """A topic with three replicas and these ISRs."""
    partitions = [Partition(n, leader, 0, (1, 2, 3), isr) for n, isr in enumerate(isrs)]
    return Topic("orders", None, False, tuple(partitions))


def test_healthy_cluster_has_no_findings() -> None:
    assert findings(ClusterState(LIVE, [topic((1, 2, 3), (3, 2, 1))])) == []


def test_offline_partition_is_critical_and_named_once() -> None:
    (found,) = findings(ClusterState(LIVE, [topic((1,), leader=None)]))
    assert (found.severity, found.check) == (Severity.CRITICAL, "offline")
    wanted = "1 of 1 partitions have no leader, and can be neither read nor written: 0"
    assert found.message == wanted


def test_min_isr_above_the_replication_factor_counts_as_the_replication_factor() -> None:
    state = ClusterState(LIVE, [topic((1, 2, 3))], {"orders": 5})
    assert findings(state) == []


def test_missing_controller_is_critical() -> None:
    (found,) = findings(ClusterState(Cluster("c", None, LIVE.brokers), []))
    assert found.check == "no-controller"


def test_failed_and_full_disks_are_found() -> None:
    dirs = [
        LogDir(1, "/a", ErrorCode.KAFKA_STORAGE_ERROR, None, None, ()),
        LogDir(2, "/b", ErrorCode.NONE, 100, 14, ()),
        LogDir(3, "/c", ErrorCode.NONE, 100, 15, ()),
    ]
    found = findings(ClusterState(LIVE, [], log_dirs=dirs))
    assert [(f.check, f.subject) for f in found] == [
        ("offline-log-dir", "broker 1"),
        ("disk-space", "broker 2"),
    ]
