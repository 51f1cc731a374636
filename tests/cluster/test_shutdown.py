"""A broker that is stopped hands over its leaderships, and clients notice nothing."""

from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from kazoo.client import KazooClient

from broker.model import TopicPartition
from tests.cluster.asking import in_sync, make_topic
from tests.support.cluster import QUICK, Cluster, running_cluster, wait_until
from tests.support.consumed import offset_of
from tests.support.zookeeper import ZooKeeper, running_zookeeper


def test_leadership_moves_before_the_broker_is_gone(shared_cluster: Cluster) -> None:
    cluster, topic = shared_cluster, "handed-over"
    make_topic(cluster, topic, {0: [2, 3, 1], 1: [3, 2, 1]})
    leaving = cluster.servers[2]
    epoch = cluster.partition_state(topic)["leader_epoch"]
    assert cluster.stop(2) == 0
    state = cluster.partition_state(topic)
    assert (state["leader"], state["leader_epoch"]) == (3, epoch + 1)
    assert state["isr"] == [3, 1]
    assert cluster.isr(topic, 1) == [3, 1]
    assert cluster.live_brokers() == [1, 3], "the session is closed, not left to expire"
    assert "the controlled shutdown did not succeed" not in leaving.log_file.read_text()
    cluster.start(2)
    in_sync(cluster, TopicPartition(topic, 0), [1, 2, 3])


def test_a_producer_loses_nothing_and_waits_little_while_each_broker_is_restarted_in_turn(
    shared_cluster: Cluster,
) -> None:
    cluster, topic = shared_cluster, "rolling"
    make_topic(cluster, topic, {0: [1, 2, 3]}, min_insync_replicas="2")
    failed: list[KafkaError] = []
    delivered: list[int] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error:
            failed.append(error)
        else:
            delivered.append(offset_of(message))

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "enable.idempotence": True,
            "delivery.timeout.ms": 30_000,
        }
    )
    for broker_id in (1, 2, 3):
        producer.produce(topic, b"before", on_delivery=on_delivery)
        in_sync(cluster, TopicPartition(topic, 0), [1, 2, 3])
        cluster.restart(broker_id)
        producer.produce(topic, b"after", on_delivery=on_delivery)
        assert producer.flush(30) == 0
    assert not failed
    assert delivered == list(range(6))
    in_sync(cluster, TopicPartition(topic, 0), [1, 2, 3])


def test_the_controller_can_shut_down(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    before = wait_until(cluster.controller_id, "a controller")
    assert cluster.stop(before) == 0
    after = wait_until(cluster.controller_id, "another controller")
    assert after != before
    cluster.start(before)


def test_brokers_stop_even_if_zookeeper_is_away(tmp_path: Path) -> None:
    with running_zookeeper(tmp_path) as zookeeper:
        cluster = Cluster(tmp_path, zookeeper.fresh_chroot(), dict(QUICK), KazooClient())
        cluster.start(1, 2)
    servers = dict(cluster.servers)
    for server in servers.values():
        server.wait_for_line("Connection dropped")
        server.process.terminate()
    for server in servers.values():
        assert server.process.wait(30) == 0
        assert "ZooKeeper is not connected" in server.log_file.read_text()
    for broker_id in servers:
        assert (cluster.log_dir(broker_id) / ".kafka_cleanshutdown").exists()


def test_a_broker_without_other_replicas_in_sync_stops_nevertheless(
    tmp_path: Path, zookeeper_server: ZooKeeper
) -> None:
    settings = {"controlled.shutdown.max.retries": 2}
    with running_cluster(tmp_path, zookeeper_server.fresh_chroot(), 2, settings) as cluster:
        make_topic(cluster, "both", {0: [1, 2]})
        cluster.stop(2)
        last = cluster.servers[1]
        assert cluster.stop(1) == 0
        output = last.log_file.read_text()
        assert "1 partitions have no other in-sync replica" in output
        assert "the controlled shutdown did not succeed" in output
