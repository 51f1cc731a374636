"""Clusters for the scenarios: real processes on a real ZooKeeper."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, running_cluster
from tests.support.zookeeper import ZooKeeper


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them use ZooKeeper; one worker has the one that is started."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.zk)
            item.add_marker(pytest.mark.xdist_group("zk"))


@pytest.fixture(scope="module")
def shared_cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Three brokers for a module's tests; each test leaves all of them running."""
    directory = tmp_path_factory.mktemp("cluster")
    with running_cluster(directory, zookeeper_server.fresh_chroot()) as cluster:
        yield cluster


@pytest.fixture
def empty_cluster(tmp_path: Path, zookeeper: str) -> Iterator[Cluster]:
    """A cluster without brokers yet: the test starts those it wants."""
    with running_cluster(tmp_path, zookeeper, brokers=0) as cluster:
        yield cluster
