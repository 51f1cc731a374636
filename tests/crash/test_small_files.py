"""Garbage in a small file: one line names the file and the remedy; nothing else is lost."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.log.layout import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_CHECKPOINT,
)
from tests.support.broker import RunningBroker, running_broker

GARBAGE = {
    "random": os.urandom(300),
    "not UTF-8": b"version: 0\ntopic_id: \xff\xfe\n",
    "cut": b"version: 0\ntopic",
    "zeros": bytes(64),
}

CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    "replication-offset-checkpoint",
    f"bad-0/{LEADER_EPOCH_CHECKPOINT}",
)


def produce(broker: RunningBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"kept", partition=0)
    assert producer.flush(15) == 0


def values(broker: RunningBroker, topic: str) -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(15)
    found = [] if message is None or message.error() else [message.value()]
    consumer.close()
    return found


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a killed broker with two topics."""
    directory = tmp_path_factory.mktemp("killed")
    with running_broker(directory) as broker:
        produce(broker, "bad")
        produce(broker, "good")
        broker.server.process.kill()
    return directory / "data"


@pytest.fixture
def stopped(killed: Path, tmp_path: Path) -> Path:
    """A copy of that directory."""
    return Path(shutil.copytree(killed, tmp_path / "data"))


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_bad_partition_metadata_costs_that_partition_only(stopped: Path, garbage: bytes) -> None:
    path = stopped / "bad-0" / PARTITION_METADATA_FILE
    path.write_bytes(garbage)
    with running_broker(stopped.parent) as broker:
        assert values(broker, "good") == [b"kept"]
        lines = [line for line in broker.output().splitlines() if str(path) in line]
        assert "ERROR partition offline partition=bad-0" in lines[0]
        assert "delete the file" in lines[0]
        assert "Traceback" not in broker.output()
        assert "log directory offline" not in broker.output()
    path.unlink()
    with running_broker(stopped.parent) as broker:
        assert values(broker, "bad") == [b"kept"]


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_bad_checkpoints_cost_nothing(stopped: Path, garbage: bytes) -> None:
    paths = [stopped / name for name in CHECKPOINTS]
    for path in paths:
        path.write_bytes(garbage)
    with running_broker(stopped.parent) as broker:
        assert values(broker, "good") == values(broker, "bad") == [b"kept"]
        for path in paths:
            lines = [line for line in broker.output().splitlines() if str(path) in line]
            assert len(lines) == 1
            assert " WARNING " in lines[0]
        assert "Traceback" not in broker.output()


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_bad_meta_properties_stops_the_start_with_one_line(stopped: Path, garbage: bytes) -> None:
    path = stopped / META_PROPERTIES_FILE
    path.write_bytes(garbage)
    settings = ("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={stopped}")
    done = subprocess.run(
        [sys.executable, "-m", "broker", *(f"--override={setting}" for setting in settings)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert str(path) in last
    assert "restore the file" in last


def test_data_is_readable_by_the_group_only(stopped: Path) -> None:
    for path in stopped.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o027 == 0, (path, oct(mode))
