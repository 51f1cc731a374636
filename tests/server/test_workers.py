"""`kctl-broker --workers N`: real processes on a real ZooKeeper; the settings of each worker."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from broker.config import BrokerConfig, ConfigError
from broker.config.loading import parse_config
from broker.server.workers import check_workers, worker_settings
from tests.support.cluster import wait_until
from tests.support.processes import ServerProcess, free_port

ALL_STARTED_S = 120


def settings(**values: str) -> BrokerConfig:
    own = {"zookeeper.connect": "localhost:2181", "log.dirs": "/data"}
    return parse_config(own | {key.replace("_", "."): value for key, value in values.items()})


class TestSettings:
    def test_ids_ports_and_directories_follow_the_number(self) -> None:
        config = settings(
            broker_id="10",
            listeners="PLAINTEXT://0.0.0.0:9092",
            advertised_listeners="PLAINTEXT://kafka1:19092",
            admin_listeners="http://127.0.0.1:9644",
            log_dirs="/a,/b",
        )
        assert worker_settings(config, 2, 3) == {
            "broker.id": "12",
            "listeners": "PLAINTEXT://0.0.0.0:9094",
            "advertised.listeners": "PLAINTEXT://kafka1:19094",
            "admin.listeners": "http://127.0.0.1:9646",
            "log.dirs": "/a/worker-2,/b/worker-2",
            "broker.rack": socket.gethostname(),
        }

    def test_neighbouring_ports_of_listeners_are_not_used_twice(self) -> None:
        config = settings(
            listeners="PLAINTEXT://:9092,INTERNAL://:9093",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
            inter_broker_listener_name="INTERNAL",
            admin_listeners="http://127.0.0.1:9094",
        )
        own = [worker_settings(config, number, 3) for number in range(3)]
        texts = [one["listeners"] + one["admin.listeners"] for one in own]
        ports = [int(port) for text in texts for port in re.findall(r":(\d+)", text)]
        assert sorted(ports) == list(range(9092, 9101))

    def test_port_0_rack_and_generated_ids_stay(self) -> None:
        own = worker_settings(settings(listeners="PLAINTEXT://:0", broker_rack="r1"), 1, 2)
        assert own == {"listeners": "PLAINTEXT://:0", "log.dirs": "/data/worker-1"}

    def test_ports_above_the_largest_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="port 65536"):
            worker_settings(settings(listeners="PLAINTEXT://:65535"), 0, 2)

    def test_directory_of_a_single_broker_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "meta.properties").touch()
        with pytest.raises(ConfigError, match="without --workers"):
            check_workers(settings(log_dirs=str(tmp_path)), 2)


def test_embedded_store_is_refused_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "broker", "--workers=2", f"--override=log.dirs={tmp_path}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(
        "kctl-broker: --workers=2 needs zookeeper.connect"
    )


def free_ports() -> int:
    """The first of two neighbouring ports that nothing listens on now."""
    while True:
        port = free_port()
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


@contextmanager
def workers(directory: Path, zookeeper: str, port: int, *more: str) -> Iterator[ServerProcess]:
    """Two brokers, 1 and 2, and their supervisor, which the caller may end."""
    own = {
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": 3000,
        "broker.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": directory / "data",
        "controlled.shutdown.retry.backoff.ms": 200,
    }
    overrides = [f"--override={key}={value}" for key, value in own.items()]
    command = [sys.executable, "-m", "broker", "--workers=2", *overrides, *more]
    with ServerProcess(command, directory / "workers.log") as server:
        yield server


def pids(server: ServerProcess, worker: int) -> list[int]:
    """The process ids of all lives of a worker so far."""
    found = re.findall(rf"started worker={worker} pid=(\d+)", server.log_file.read_text())
    return [int(pid) for pid in found]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan whose parent has not looked at its status yet.
    return " Z " not in Path(f"/proc/{pid}/stat").read_text()


def until_started(server: ServerProcess, worker: int, times: int) -> None:
    wait_until(
        lambda: (
            len(re.findall(rf"worker={worker} started broker\.id=", server.log_file.read_text()))
            >= times
        ),
        f"worker {worker} starts {times} times",
        ALL_STARTED_S,
    )


@pytest.fixture
def tree(zookeeper: str) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.mark.zk
def test_worker_that_dies_is_restarted_and_one_signal_stops_all(
    tmp_path: Path, zookeeper: str, tree: KazooClient
) -> None:
    port = free_ports()
    with workers(tmp_path, zookeeper, port) as server:
        for worker in (0, 1):
            until_started(server, worker, 1)
        assert sorted(tree.get_children("/brokers/ids")) == ["1", "2"]
        rack = f'"rack":"{socket.gethostname()}"'
        for broker_id, at in ((1, port), (2, port + 1)):
            data = tree.get(f"/brokers/ids/{broker_id}")[0].decode().replace(" ", "")
            assert rack in data
            assert f"PLAINTEXT://127.0.0.1:{at}" in data

        os.kill(pids(server, 1)[0], signal.SIGKILL)
        until_started(server, 1, 2)
        assert sorted(tree.get_children("/brokers/ids")) == ["1", "2"]

        assert server.stop() == 0
        assert not any(is_running(pid) for worker in (0, 1) for pid in pids(server, worker))
        assert tree.get_children("/brokers/ids") == []
    assert "Traceback" not in server.log_file.read_text()
    assert (tmp_path / "data" / "worker-0" / "meta.properties").exists()


@pytest.mark.zk
def test_workers_stop_when_their_supervisor_is_killed(tmp_path: Path, zookeeper: str) -> None:
    with workers(tmp_path, zookeeper, free_ports()) as server:
        for worker in (0, 1):
            until_started(server, worker, 1)
        server.process.kill()
        started = [pid for worker in (0, 1) for pid in pids(server, worker)]
        wait_until(
            lambda: not any(is_running(pid) for pid in started), "the workers stop", ALL_STARTED_S
        )


@pytest.mark.zk
def test_worker_that_cannot_start_ends_all(tmp_path: Path, zookeeper: str) -> None:
    port = free_ports()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        with workers(tmp_path, zookeeper, port) as server:
            assert server.process.wait(ALL_STARTED_S) == 1
            output = server.log_file.read_text()
    assert f"kctl-broker: worker 1: cannot listen on PLAINTEXT://127.0.0.1:{port + 1}" in output
    assert "Traceback" not in output
