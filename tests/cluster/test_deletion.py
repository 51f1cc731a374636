"""Topics go: from every broker's disk and from the store, at once or when a broker is back."""

from broker.errors import ErrorCode
from tests.cluster.asking import delete_topic, make_topic, the_controller
from tests.support.cluster import Cluster, wait_until


def partitions_on_disk(cluster: Cluster, topic: str) -> set[int]:
    """The brokers that have a partition of the topic."""
    return {
        broker_id
        for broker_id in (1, 2, 3)
        if any(
            path.name.startswith(f"{topic}-") and not path.name.endswith("-delete")
            for path in cluster.log_dir(broker_id).iterdir()
        )
    }


def is_gone(cluster: Cluster, topic: str) -> bool:
    return not (
        cluster.tree.exists(f"/brokers/topics/{topic}")
        or cluster.tree.exists(f"/admin/delete_topics/{topic}")
        or cluster.tree.exists(f"/config/topics/{topic}")
        or partitions_on_disk(cluster, topic)
    )


def test_deleted_topic_leaves_nothing_and_its_name_is_free(shared_cluster: Cluster) -> None:
    make_topic(shared_cluster, "gone", {0: [1, 2, 3], 1: [2, 3, 1]}, retention_ms="1000")
    wait_until(lambda: partitions_on_disk(shared_cluster, "gone") == {1, 2, 3}, "logs are made")
    assert delete_topic(shared_cluster, "gone") == 0
    assert is_gone(shared_cluster, "gone")
    assert delete_topic(shared_cluster, "gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    make_topic(shared_cluster, "gone", {0: [3, 1]})
    wait_until(lambda: partitions_on_disk(shared_cluster, "gone") == {1, 3}, "logs are made")
    assert shared_cluster.znode("/config/topics/gone")["config"] == {}


def test_topic_asked_away_by_a_node_goes(shared_cluster: Cluster) -> None:
    make_topic(shared_cluster, "noted", {0: [1, 2, 3]})
    shared_cluster.tree.create("/admin/delete_topics/noted")
    wait_until(lambda: is_gone(shared_cluster, "noted"), "the topic is gone")


def test_replica_on_a_dead_broker_goes_when_that_is_back(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    controller = the_controller(cluster)
    dead = controller % 3 + 1
    make_topic(cluster, "waited", {0: [1, 2, 3]})
    wait_until(lambda: partitions_on_disk(cluster, "waited") == {1, 2, 3}, "logs are made")
    cluster.stop(dead)
    assert delete_topic(cluster, "waited") == 0  # clients do not see it any more
    assert cluster.tree.exists("/admin/delete_topics/waited")
    wait_until(lambda: partitions_on_disk(cluster, "waited") == {dead}, "the others are gone")
    cluster.start(dead)
    wait_until(lambda: is_gone(cluster, "waited"), "the topic is gone")
