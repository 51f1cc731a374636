"""Groups and transactions continue by themselves after brokers were killed under load."""

from pathlib import Path

import pytest

from tests.group.kill_loop import SETTINGS, run
from tests.support.cluster import running_cluster


@pytest.mark.zk
@pytest.mark.timeout(300)
def test_clients_commit_again_after_kills(tmp_path: Path, zookeeper: str) -> None:
    with running_cluster(tmp_path, zookeeper, 3, SETTINGS) as cluster:
        run(cluster, kills=5, seed=3, library="librdkafka")
