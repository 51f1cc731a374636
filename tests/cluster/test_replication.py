"""Replication on real brokers: the same bytes, high watermark and ISR as in the seeds."""

import threading
import time
from collections.abc import Iterator

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.cluster.asking import in_sync, led_by
from tests.cluster.records import (
    fetch,
    latest_offset,
    log_bytes,
    produce,
    replicated_topic,
    values,
)
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.wire import WireClient
from tests.support.zookeeper import ZooKeeper

LAG_MS = 2000


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Three brokers with a short replica.lag.time.max.ms and without leader rebalancing."""
    settings = {"replica.lag.time.max.ms": LAG_MS, "auto.leader.rebalance.enable": "false"}
    directory = tmp_path_factory.mktemp("replication")
    with running_cluster(directory, zookeeper_server.fresh_chroot(), settings=settings) as made:
        yield made


def refused(cluster: Cluster, name: TopicPartition) -> None:
    """Wait until broker 1 takes no more with acks=all; it hears of its ISR after the znode."""
    wait_until(
        lambda: produce(cluster, 1, name, "x").error_code == ErrorCode.NOT_ENOUGH_REPLICAS,
        f"too few are in sync for {name}",
    )


def test_acknowledged_record_is_on_every_replica(cluster: Cluster) -> None:
    name = TopicPartition("acknowledged", 0)
    replicated_topic(cluster, name, [1, 2, 3])
    for number in range(5):
        assert produce(cluster, 1, name, f"value {number}").error_code == 0
    assert {log_bytes(cluster, broker_id, name) for broker_id in (2, 3)} == {
        log_bytes(cluster, 1, name)
    }
    assert values(fetch(cluster, 1, name)) == [f"value {number}" for number in range(5)]


def test_only_the_leader_takes_records(cluster: Cluster) -> None:
    name = TopicPartition("led", 0)
    replicated_topic(cluster, name, [1, 2])
    assert produce(cluster, 2, name, "x").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    wait_until(
        lambda: produce(cluster, 3, name, "x").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "broker 3 knows that the topic is elsewhere",
    )
    unknown = TopicPartition("nowhere", 0)
    assert produce(cluster, 3, unknown, "x").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_record_is_not_shown_before_the_isr_has_it(cluster: Cluster) -> None:
    """The seeds on HW and LEO: consumers see what all in sync have, though the leader has more."""
    name = TopicPartition("shown", 0)
    replicated_topic(cluster, name, [1, 2])
    produce(cluster, 1, name, "replicated")
    with cluster.paused(2):
        assert produce(cluster, 1, name, "alone", acks=1).error_code == 0
        late = produce(cluster, 1, name, "too late", timeout_ms=100)
        assert late.error_code == ErrorCode.REQUEST_TIMED_OUT
        seen = fetch(cluster, 1, name)
        assert (values(seen), seen.high_watermark) == (["replicated"], 1)
        assert latest_offset(cluster, 1, name) == 3
    in_sync(cluster, name, [1, 2])
    wait_until(lambda: fetch(cluster, 1, name).high_watermark == 3, "both have all three")


def test_follower_that_stands_still_leaves_the_isr_and_returns(cluster: Cluster) -> None:
    """The seeds on an ISR of one with acks=all: the leader is enough, if the topic allows."""
    name, strict = TopicPartition("lagging", 0), TopicPartition("strict", 0)
    replicated_topic(cluster, name, [1, 2])
    replicated_topic(cluster, strict, [1, 2], **{"min.insync.replicas": "2"})
    with cluster.paused(2):
        for one in (name, strict):
            assert produce(cluster, 1, one, "alone", acks=1).error_code == 0
        in_sync(cluster, name, [1])
        in_sync(cluster, strict, [1])
        assert produce(cluster, 1, name, "with acks=all").error_code == 0
        refused(cluster, strict)
    in_sync(cluster, name, [1, 2])
    in_sync(cluster, strict, [1, 2])
    assert produce(cluster, 1, strict, "again").error_code == 0
    assert log_bytes(cluster, 2, name) == log_bytes(cluster, 1, name)


def test_producer_waiting_while_the_isr_shrinks_gets_an_error(cluster: Cluster) -> None:
    name = TopicPartition("waiting", 0)
    replicated_topic(cluster, name, [1, 2, 3], **{"min.insync.replicas": "2"})
    answers = []
    with cluster.paused(2), cluster.paused(3):
        waiting = threading.Thread(
            target=lambda: answers.append(
                produce(cluster, 1, name, "x", timeout_ms=LAG_MS // 4).error_code
            )
        )
        waiting.start()
        waiting.join()
        in_sync(cluster, name, [1])
        refused(cluster, name)
        # Kafka 3.9: nothing more counts as replicated while too few are in sync.
        assert fetch(cluster, 1, name).high_watermark == 0
    assert answers == [ErrorCode.REQUEST_TIMED_OUT]
    in_sync(cluster, name, [1, 2, 3])
    end = latest_offset(cluster, 1, name)
    wait_until(lambda: fetch(cluster, 1, name).high_watermark == end, "what was written counts")


def test_records_that_only_a_killed_leader_had_are_truncated(cluster: Cluster) -> None:
    name = TopicPartition("parted", 0)
    replicated_topic(cluster, name, [1, 2])
    produce(cluster, 1, name, "common")
    with cluster.paused(2):
        time.sleep(0.6)  # its last fetch is answered, replica.fetch.wait.max.ms being over
        produce(cluster, 1, name, "lost", "lost as well", acks=1)
        cluster.kill(1)
    led_by(cluster, name, 2)
    wait_until(lambda: produce(cluster, 2, name, "kept").error_code == 0, "broker 2 leads")
    cluster.start(1)
    in_sync(cluster, name, [1, 2])
    assert values(fetch(cluster, 2, name)) == ["common", "kept"]
    wait_until(
        lambda: log_bytes(cluster, 1, name) == log_bytes(cluster, 2, name), "both logs are one"
    )


def test_deleted_records_are_gone_on_every_replica_before_the_response(cluster: Cluster) -> None:
    name = TopicPartition("trimmed", 0)
    replicated_topic(cluster, name, [1, 2, 3])
    for number in range(3):
        produce(cluster, 1, name, f"{number}")
    asked = DeleteRecordsPartition(partition_index=0, offset=2)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name.topic, partitions=[asked])], timeout_ms=10_000
    )
    with WireClient(cluster.address(1)) as wire:
        answer = wire.ask(request, 2).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (0, 2)
    for broker_id in (1, 2, 3):
        assert fetch(cluster, broker_id, name, 2).log_start_offset == 2
