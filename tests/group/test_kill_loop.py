"""Groups and transactions continue by themselves after brokers were killed under load."""

from pathlib import Path

import pytest

from tests.group.kill_loop import SETTINGS, Kills, run
from tests.support.cluster import running_cluster
from tests.support.zookeeper import ZooKeeper


@pytest.mark.zk
@pytest.mark.timeout(300)
def test_clients_commit_again_after_kills(tmp_path: Path, zookeeper: str) -> None:
    with running_cluster(tmp_path, zookeeper, 3, SETTINGS) as cluster:
        run(cluster, Kills(count=5, seed=3), "librdkafka")


@pytest.mark.kafka
@pytest.mark.timeout(400)
def test_java_clients_commit_again_after_kills(tmp_path: Path, zookeeper_server: ZooKeeper) -> None:
    with running_cluster(tmp_path, zookeeper_server.fresh_chroot(), 3, SETTINGS) as cluster:
        run(cluster, Kills(count=10, seed=3), "java")
