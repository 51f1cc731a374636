"""Rolling restarts under load: every broker is stopped cleanly and started again, in turn."""

import json

from tests.cluster.asking import make_topic
from tests.support.ack_load import AckLoad, ack_load
from tests.support.cluster import Cluster, wait_until

BROKERS = (1, 2, 3)
PARTITIONS = 6
SETTINGS = {
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": 5,
}
_HEAL_S = 120


def roll(cluster: Cluster, topic: str, rounds: int) -> list[float]:
    """Restart all brokers this many times; the longest acknowledgement at each restart.

    As an operator does, the next broker is stopped when all replicas are in sync again and the
    producer has records of all partitions acknowledged.
    """
    make_topic(cluster, topic, _spread())
    waits = []
    with ack_load(cluster.bootstrap_servers, topic, PARTITIONS) as load:
        wait_until(lambda: load.count > 100, "the producer is at work", _HEAL_S)
        load.take_longest_wait()
        for _ in range(rounds):
            for broker_id in BROKERS:
                cluster.restart(broker_id)
                _until_whole(cluster, topic, load)
                waits.append(load.take_longest_wait())
    assert load.failed == []
    for offsets in load.acknowledged.values():
        assert offsets == list(range(len(offsets))), "records were lost, repeated or reordered"
    return waits


def _spread() -> dict[int, list[int]]:
    """Replicas by partition; every broker leads as many as the others."""
    return {
        index: [BROKERS[(index + step) % 3] for step in range(3)] for index in range(PARTITIONS)
    }


def _until_whole(cluster: Cluster, topic: str, load: AckLoad) -> None:
    topics = cluster.tree.get_children("/brokers/topics")
    names = [
        (name, int(index))
        for name in topics
        for index in json.loads(cluster.tree.get(f"/brokers/topics/{name}")[0])["partitions"]
    ]
    wait_until(
        lambda: all(sorted(cluster.isr(*name)) == list(BROKERS) for name in names),
        "all replicas are in sync",
        _HEAL_S,
    )
    seen = load.counts()
    wait_until(lambda: load.has_moved_since(seen), "the producer continues", _HEAL_S)
