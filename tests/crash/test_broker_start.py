"""Starting and stopping the broker: one clear line for each problem, never a traceback."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker.log.layout import CLEAN_SHUTDOWN_FILE
from tests.support.broker import RunningBroker, running_broker
from tests.support.consumed import offset_of


def start_in_vain(**settings: object) -> str:
    """Start a broker that must fail; returns the last line of its output, without its name."""
    given = {"listeners": "PLAINTEXT://127.0.0.1:0"} | settings
    overrides = [f"--override={key.replace('_', '.')}={value}" for key, value in given.items()]
    done = subprocess.run(
        [sys.executable, "-m", "broker", *overrides], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    *others, last = done.stderr.splitlines()
    assert [line for line in others if " ERROR " in line] == []
    assert last.startswith("kctl-broker: ")
    return last.removeprefix("kctl-broker: ")


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("num.partitions", "zero", "Not a number"),
        ("num.partitions", "0", "at least 1"),
        ("log.cleanup.policy", "shred", "compact, delete"),
        ("listeners", "nonsense", "NAME://host:port"),
        ("listeners", "PLAINTEXT://127.0.0.1:99999", "between 0 and 65535"),
        ("compression.type", "rar", "zstd"),
    ],
)
def test_bad_value_is_named_with_its_key_and_what_is_allowed(
    tmp_path: Path, key: str, value: str, allowed: str
) -> None:
    line = start_in_vain(**{"log.dirs": tmp_path / "data", key: value})
    assert key in line
    assert value in line
    assert allowed in line
    assert not (tmp_path / "data").exists()


def test_port_in_use_is_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = start_in_vain(log_dirs=tmp_path / "data", listeners=f"PLAINTEXT://127.0.0.1:{port}")
    assert line == f"cannot listen on PLAINTEXT://127.0.0.1:{port}: Address already in use"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("below", ["", "data"])
def test_log_directory_that_is_a_file_is_named_with_its_key(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("somebody's")
    path = tmp_path / "file" / below
    problem = "Not a directory" if below else "not a directory"
    assert start_in_vain(log_dirs=path) == f"log.dirs: cannot use {path}: {problem}"
    assert (tmp_path / "file").read_text() == "somebody's"


def test_second_broker_on_a_directory_is_refused_and_the_first_is_not_affected(
    broker: RunningBroker,
) -> None:
    line = start_in_vain(log_dirs=broker.log_dir)
    assert "another process uses this metadata store" in line
    assert str(broker.log_dir) in line
    assert produce_one(broker) == 0


def test_second_directory_that_another_broker_uses_is_refused_as_well(
    broker: RunningBroker, tmp_path: Path
) -> None:
    line = start_in_vain(log_dirs=f"{tmp_path / 'own'},{broker.log_dir}")
    assert "another broker uses the log directory" in line


def test_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    with running_broker(tmp_path, broker_id=7):
        pass
    line = start_in_vain(log_dirs=tmp_path / "data", broker_id=8)
    assert "broker.id=7" in line
    assert "8" in line


def test_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        properties = broker.log_dir / "meta.properties"
    text = properties.read_text()
    own = next(line for line in text.splitlines() if line.startswith("cluster.id="))
    properties.write_text(text.replace(own, "cluster.id=AAAAAAAAAAAAAAAAAAAAAA"))
    line = start_in_vain(log_dirs=tmp_path / "data")
    assert "cluster.id=AAAAAAAAAAAAAAAAAAAAAA" in line
    assert own.removeprefix("cluster.id=") in line


def test_log_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    assert str(tmp_path / "data") in start_in_vain(log_dirs=tmp_path / "data")


def produce_one(broker: RunningBroker) -> int:
    """Write a record and return its offset."""
    offsets: list[int] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("kept", b"value", on_delivery=lambda _, sent: offsets.append(offset_of(sent)))
    assert producer.flush(10) == 0
    return offsets[0]


def test_sigterm_leaves_the_marker_and_the_next_start_recovers_nothing(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        assert produce_one(broker) == 0
        assert broker.server.stop() == 0
    marker = broker.log_dir / CLEAN_SHUTDOWN_FILE
    assert json.loads(marker.read_text())["version"] == 0
    with running_broker(tmp_path) as broker:
        assert not marker.exists()
        assert "recover" not in broker.output()
        assert produce_one(broker) == 1


def test_kill_leaves_no_marker_and_the_next_start_recovers(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        assert produce_one(broker) == 0
        broker.server.process.kill()
        broker.server.process.wait()
    assert not (broker.log_dir / CLEAN_SHUTDOWN_FILE).exists()
    with running_broker(tmp_path) as broker:
        assert "recover" in broker.output()
        assert produce_one(broker) == 1
