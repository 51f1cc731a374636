"""`kctl dev up --brokers 3`: a cluster from one command to the next."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.java import find_java
from tests.support.cluster import wait_until
from tests.support.kctl import Kctl
from tests.support.zookeeper import ZooKeeper


@pytest.fixture
def directory(tmp_path: Path, kctl: Kctl) -> Iterator[str]:
    """Where the servers of a test live; whatever it leaves running is stopped."""
    state = str(tmp_path / "state")
    yield state
    kctl("dev", "down", "--dir", state)


def statuses(kctl: Kctl, directory: str) -> dict[object, str]:
    rows = kctl("dev", "status", "--dir", directory, "-o", "json").json
    return {row["id"]: row["status"] for row in rows}


@pytest.mark.timeout(120)
def test_a_cluster_goes_up_loses_a_broker_gets_it_back_and_goes_down(
    kctl: Kctl, directory: str
) -> None:
    up = kctl("dev", "up", "--brokers", "3", "--port", "0", "--dir", directory)
    assert up.exit_code == 0, up.stderr
    assert "3 brokers started" in up.stderr
    bootstrap = up.output.strip()
    assert len(bootstrap.split(",")) == 3
    assert kctl("brokers", "list", "-b", bootstrap, "-o", "name").output == "1\n2\n3\n"
    running = dict.fromkeys([1, 2, 3, "zookeeper"], "running")
    assert statuses(kctl, directory) == running
    created = kctl("topics", "create", "t", "-b", bootstrap)
    assert created.exit_code == 0, created.stderr
    (topic,) = wait_until(  # the broker that is asked may hear of it last
        lambda: kctl("topics", "list", "-b", bootstrap, "-o", "json").json, "the topic is known"
    )
    assert topic["replication_factor"] == 3
    assert kctl("dev", "kill", "2", "--dir", directory).exit_code == 0
    assert statuses(kctl, directory) == running | {2: "stopped"}
    again = kctl("dev", "start", "2", "--dir", directory)
    assert again.exit_code == 0, again.stderr
    assert kctl("dev", "stop", "3", "--dir", directory).exit_code == 0
    assert statuses(kctl, directory) == running | {3: "stopped"}
    assert "binding to port" in kctl("dev", "logs", "zookeeper", "--dir", directory).output
    assert kctl("dev", "down", "--dir", directory).exit_code == 0
    assert statuses(kctl, directory) == dict.fromkeys(running, "stopped")
    alone = kctl("dev", "up", "--port", "0", "--dir", directory)
    assert alone.exit_code == 1
    assert "belongs to a cluster of 3 brokers" in alone.stderr
    assert kctl("dev", "down", "--delete-data", "--dir", directory).exit_code == 0
    assert statuses(kctl, directory) == {}


def test_a_cluster_on_a_zookeeper_that_runs_already_starts_none(
    kctl: Kctl, directory: str, zookeeper: str, zookeeper_server: ZooKeeper
) -> None:
    options = ("--brokers", "2", "--port", "0", "--zookeeper", f"{zookeeper}/trial")
    up = kctl("dev", "up", *options, "--dir", directory)
    assert up.exit_code == 0, up.stderr
    assert statuses(kctl, directory) == {1: "running", 2: "running"}
    path = zookeeper.removeprefix(zookeeper_server.address)
    assert "brokers" in zookeeper_server.children(f"{path}/trial")


def test_without_java_one_line_says_what_to_do(
    kctl: Kctl, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("kctl.java._wheel_home", lambda: None)
    up = kctl("dev", "up", "--brokers", "3", "--port", "0", "--dir", directory)
    assert up.exit_code == 1
    assert "no Java 17 or newer" in up.stderr
    assert "pip install" in up.stderr


def test_a_zookeeper_that_cannot_be_reached_is_named_and_nothing_is_left_running(
    kctl: Kctl, directory: str
) -> None:
    options = ("--brokers", "2", "--port", "0", "--zookeeper", "127.0.0.1:1")
    timeout = ("--set", "zookeeper.connection.timeout.ms=500")
    up = kctl("dev", "up", *options, *timeout, "--dir", directory)
    assert up.exit_code == 1
    assert "no ZooKeeper answered within 500 ms" in up.stderr
    assert "WARNING" not in up.stderr  # the reason alone, not what was logged before it
    assert statuses(kctl, directory) == {1: "stopped", 2: "stopped"}


@pytest.mark.timeout(180)
def test_a_cluster_grows_by_a_broker_and_shrinks_again(kctl: Kctl, directory: str) -> None:
    up = kctl(
        *("dev", "up", "--brokers", "2", "--port", "0", "--racks", "a,b", "--seed-data"),
        *("--dir", directory),
    )
    assert up.exit_code == 0, up.stderr
    bootstrap = up.output.strip()
    brokers = kctl("brokers", "list", "-b", bootstrap, "-o", "json").json
    assert [broker["rack"] for broker in brokers] == ["a", "b"]
    rows = kctl("offsets", "orders", "-b", bootstrap, "-o", "json").json
    assert sum(row["offset"] for row in rows) == 1000
    offsets = kctl("groups", "describe", "billing", "-b", bootstrap, "-o", "json").json
    assert sum(row["current_offset"] or 0 for row in offsets) == 400
    added = kctl("dev", "add", "--rack", "c", "--dir", directory)
    assert added.exit_code == 0, added.stderr
    brokers = kctl("brokers", "list", "-b", bootstrap, "-o", "json").json
    assert [(one["id"], one["rack"]) for one in brokers] == [(1, "a"), (2, "b"), (3, "c")]
    created = kctl("topics", "create", "third", "--replica-assignment", "3", "-b", bootstrap)
    assert created.exit_code == 0, created.stderr
    refused = kctl("dev", "remove", "3", "--dir", directory)
    assert (refused.exit_code, "broker 3 has replicas of" in refused.stderr) == (1, True)
    assert statuses(kctl, directory)[3] == "running"
    assert kctl("topics", "delete", "third", "--yes", "-b", bootstrap).exit_code == 0
    wait_until(
        lambda: kctl("dev", "remove", "3", "--dir", directory).exit_code == 0,
        "the topic is gone and the broker can be removed",
    )
    assert 3 not in statuses(kctl, directory)


def test_impossible_changes_of_the_cluster_are_refused(kctl: Kctl, directory: str) -> None:
    for words, message in (
        (("add",), "there are no brokers"),
        (("remove", "1"), "there is no broker 1"),
        (("up", "--racks", "a,,b"), "a rack has no name"),
        (("up", "--zookeeper-port", "2181"), "no ZooKeeper is started"),
        (("up", "--secure", "--seed-data"), "cannot be combined"),
    ):
        result = kctl("dev", *words, "--dir", directory)
        assert result.exit_code in (1, 2), words
        assert message in result.stderr
    assert statuses(kctl, directory) == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--brokers", "0"), "starts nothing"),
        (("--kafka", "1", "--secure"), "cannot be combined with --secure"),
        (("--kafka", "-1"), "--kafka"),
    ],
)
def test_impossible_apache_kafka_is_refused_and_nothing_is_started(
    kctl: Kctl, directory: str, words: tuple[str, ...], message: str
) -> None:
    refused = kctl("dev", "up", "--dir", directory, *words)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert kctl("dev", "status", "--dir", directory, "-o", "json").json == []


def test_without_maven_apache_kafka_is_refused_and_nothing_is_started(
    kctl: Kctl, directory: str, tmp_path: Path
) -> None:
    nothing = str(tmp_path)
    env = {"PATH": nothing, "JAVA_HOME": str(find_java().home), "XDG_CACHE_HOME": nothing}
    refused = kctl("dev", "up", "--kafka", "1", "--dir", directory, env=env)
    assert refused.exit_code == 1
    assert "Maven is not installed" in refused.stderr
    assert not Path(directory).exists() or not list(Path(directory).iterdir())


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_apache_kafka_joins_our_brokers_and_either_continues_on_the_others_data(
    kctl: Kctl, directory: str
) -> None:
    def dev(*words: str) -> str:
        done = kctl("dev", *words, "--dir", directory)
        assert done.exit_code == 0, done.stderr
        return done.output.strip()

    def software() -> list[str]:
        rows = kctl("dev", "status", "--dir", directory, "-o", "json").json
        assert {row["status"] for row in rows} == {"running"}
        return [row["software"] for row in rows]

    servers = dev("up", "--port", "0", "--brokers", "1", "--kafka", "1")
    assert software() == ["kctl-broker", "Apache Kafka 3.9.1", "ZooKeeper"]
    topic = kctl("-b", servers, "topics", "create", "shared", "--replica-assignment", "1:2,2:1")
    assert topic.exit_code == 0, topic.stderr
    names = ("topics", "list", "-o", "name")
    wait_until(
        lambda: all("shared" in kctl("-b", one, *names).output for one in servers.split(",")),
        "both brokers know the topic",
    )
    assert kctl("-b", servers, "verify", "produce", "shared", "-n", "100").exit_code == 0
    dev("kill", "2")
    dev("start", "2")
    dev("add", "--kafka")
    assert len(kctl("-b", servers, "brokers", "list", "-o", "json").json) == 3
    dev("remove", "3")
    dev("down")
    servers = dev("up", "--port", "0", "--brokers", "2")
    assert software() == ["kctl-broker", "kctl-broker", "ZooKeeper"]
    read = kctl("-b", servers, "verify", "consume", "shared", "--expect", "100", "-o", "json")
    assert read.exit_code == 0, read.stderr
