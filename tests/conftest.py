"""Fixtures every room may use. Servers are real processes on free ports, ended by their id."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from broker.clock import ManualClock
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import Kctl, run_kctl
from tests.support.real_kafka import RealKafka, running_kafka
from tests.support.zookeeper import ZooKeeper, running_zookeeper


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite`: golden texts (tests/scenarios) take what happens now; read the diff."""
    parser.addoption("--rewrite", action="store_true", help="write golden texts anew")


# How long an example takes, or takes to make, says more of the machine than of the code.
settings.register_profile("kctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kctl")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one outside server on one worker, so that it is started once."""
    for item in items:
        for marker in ("kafka", "zk", "spark"):
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.xdist_group(marker))


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock that stands still until the test moves it."""
    return ManualClock(now_ms=1_700_000_000_000)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """An empty directory for a broker's or a partition's files."""
    directory = tmp_path / "logs"
    directory.mkdir()
    return directory


@pytest.fixture
def kctl() -> Kctl:
    """Run kctl in this process: `kctl("brokers", "list")` → output, json, stderr, exit_code."""
    return run_kctl


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """A real broker process on a free port, with nothing in it yet."""
    with running_broker(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker for a module's tests that only read, or that use topics of their own."""
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """One ZooKeeper for all tests that want one."""
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def zookeeper(zookeeper_server: ZooKeeper) -> str:
    """A connect string of a real ZooKeeper with a tree of the test's own."""
    return zookeeper_server.fresh_chroot()


@pytest.fixture(scope="session")
def real_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """One broker of Apache Kafka; mark the test `kafka`, and use topics of its own."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster
