"""DescribeLogDirs and AlterReplicaLogDirs of a broker with two log directories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from tests.conformance.admin_cluster import replicas_that_move
from tests.conformance.admin_offsets import list_offsets, produce
from tests.conformance.admin_topics import create, topic
from tests.conformance.exchange import Exchange, talk
from tests.support.broker import RunningBroker, running_broker
from tests.support.wire import WireClient


@pytest.fixture
def dirs(tmp_path: Path) -> list[Path]:
    """Two directories."""
    return [tmp_path / "first", tmp_path / "second"]


@pytest.fixture
def broker(tmp_path: Path, dirs: list[Path]) -> Iterator[RunningBroker]:
    """A broker that has both."""
    with running_broker(tmp_path, log_dirs=",".join(map(str, dirs))) as running:
        yield running


def move(path: Path, **topics: list[int]) -> AlterReplicaLogDirsRequest:
    moved = [AlterReplicaLogDirTopic(name=name, partitions=p) for name, p in topics.items()]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(path), topics=moved)])


def test_new_partitions_spread_over_the_directories(broker: RunningBroker) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        wire.ask(create(topic("orders", 6)), 7)
        described = wire.ask(DescribeLogDirsRequest(topics=None), 4)
    assert [len(result.topics[0].partitions) for result in described.results] == [3, 3]
    assert all(result.total_bytes > result.usable_bytes > 0 for result in described.results)


def test_topic_created_later_is_placed_in_the_requested_directory(
    broker: RunningBroker, dirs: list[Path]
) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        for path in dirs:
            told = wire.ask(move(path, later=[0, 1, 2]), 2)
            codes = [p.error_code for p in told.results[0].partitions]
            assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3
        wire.ask(create(topic("later", 3)), 7)
    assert sorted(path.name for path in dirs[1].glob("later-*")) == [
        "later-0",
        "later-1",
        "later-2",
    ]


def test_moved_replica_serves_what_it_had_and_is_there_after_a_restart(
    broker: RunningBroker, dirs: list[Path], tmp_path: Path
) -> None:
    talk(Exchange(AlterReplicaLogDirsRequest, replicas_that_move), 2, broker.bootstrap_servers)
    name = "replicas-that-move-v2-a"
    with WireClient(broker.bootstrap_servers) as wire:
        wire.ask(produce(name, 7000), 9)
    broker.server.stop()
    with (
        running_broker(tmp_path, log_dirs=",".join(map(str, dirs))) as again,
        WireClient(again.bootstrap_servers) as wire,
    ):
        version = ListOffsetsRequest.versions[1]
        for time, offset in ((-2, 0), (7000, 4), (-1, 5)):
            answer = wire.ask(list_offsets(version, name, time), version)
            assert answer.topics[0].partitions[0].offset == offset


def test_directory_that_cannot_be_used_is_shown_as_offline(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").write_text("not a directory")
    dirs = f"{tmp_path / 'good'},{tmp_path / 'bad'}"
    with (
        running_broker(tmp_path, log_dirs=dirs) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        wire.ask(create(topic("orders")), 7)
        described = wire.ask(DescribeLogDirsRequest(topics=None), 4)
        good, bad = described.results
        assert (good.error_code, good.log_dir) == (0, str(tmp_path / "good"))
        assert (bad.error_code, bad.total_bytes) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        told = wire.ask(move(tmp_path / "bad", orders=[0]), 2)
        assert told.results[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
