"""Fixtures for all packages. Servers are real processes on free ports, ended by their id."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from broker.clock import ManualClock
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import Kctl, run_kctl
from tests.support.kraft_kafka import KraftKafka, running_kraft
from tests.support.real_kafka import RealKafka, running_kafka
from tests.support.zookeeper import ZooKeeper, running_zookeeper

# Rollback files and development brokers must not be written to the home of the user.
_state_home = tempfile.TemporaryDirectory(prefix="kctl-tests-state-")
os.environ["XDG_STATE_HOME"] = _state_home.name


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite`: golden texts (tests/scenarios) take what happens now; read the diff."""
    parser.addoption("--rewrite", action="store_true", help="rewrite the golden texts")


# How long an example takes, or takes to make, says more of the machine than of the code.
settings.register_profile("kctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kctl")


EXAMPLES: Final = int(os.environ.get("KCTL_EXAMPLES", "1"))
"""Factor for the number of examples of every property and model test."""


DEFAULT_TIMEOUT_S: Final = 60
"""That of pyproject.toml."""


def multiply_examples(items: list[pytest.Item]) -> None:
    """Apply KCTL_EXAMPLES to property tests and model tests, and to the time that they may take."""
    functions = [item for item in items if isinstance(item, pytest.Function)]
    tests = {getattr(item.obj, "__func__", item.obj) for item in functions}
    classes = {item.cls for item in functions if item.cls}
    for test in tests:
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if own is not None:
            test._hypothesis_internal_use_settings = _multiplied(own)
    for cls in classes:
        if isinstance(own := getattr(cls, "settings", None), settings):
            cls.settings = _multiplied(own)
    for item in functions:  # Hypothesis sets its marker later
        if is_hypothesis_test(item.obj):
            limit = item.get_closest_marker("timeout")
            seconds = limit.args[0] if limit else DEFAULT_TIMEOUT_S
            item.add_marker(pytest.mark.timeout(EXAMPLES * seconds), append=False)


def _multiplied(own: settings) -> settings:
    return settings(own, max_examples=EXAMPLES * own.max_examples)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one outside server on one worker, so that it is started once."""
    if EXAMPLES > 1:
        multiply_examples(items)
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


@pytest.fixture(scope="module")
def own_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """A Kafka for one module, whose changes would disturb others: quotas throttle all clients."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kraft_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftKafka]:
    """One node of Apache Kafka 4.x in KRaft mode; mark the test `kafka`, use topics of its own."""
    with running_kraft(tmp_path_factory.mktemp("kraft")) as cluster:
        yield cluster
