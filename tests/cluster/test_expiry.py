"""Expired sessions: a broker registers in a new epoch and stops acting in the old one."""

from typing import Any

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from broker.protocol.messages.stop_replica import StopReplicaRequest
from broker.protocol.messages.update_metadata import UpdateMetadataRequest
from broker.protocol.schema import Request
from tests.cluster.asking import in_sync, led_by, make_topic
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster, wait_until
from tests.support.wire import ControllerFields, WireClient


def broker_epoch(cluster: Cluster, broker_id: int) -> int:
    stat = cluster.tree.exists(f"/brokers/ids/{broker_id}")
    return stat.czxid if stat else -1


def pause_beyond_session(cluster: Cluster, broker_id: int) -> None:
    """Pause a broker until ZooKeeper has expired its session, then resume it."""
    with cluster.paused(broker_id):
        wait_until(
            lambda: broker_id not in cluster.live_brokers(),
            "the session expires",
            10 * SESSION_TIMEOUT_MS / 1000,
        )


def test_broker_with_expired_session_registers_in_a_new_epoch_and_catches_up(
    shared_cluster: Cluster,
) -> None:
    cluster, topic = shared_cluster, "expired-follower"
    make_topic(cluster, topic, {0: [1, 2, 3]})
    before = broker_epoch(cluster, 2)
    pause_beyond_session(cluster, 2)
    wait_until(lambda: broker_epoch(cluster, 2) > before, "a new broker epoch")
    in_sync(cluster, TopicPartition(topic, 0), [1, 2, 3])


def test_leader_with_expired_session_follows_the_new_leader(
    shared_cluster: Cluster,
) -> None:
    cluster, topic = shared_cluster, "expired-leader"
    make_topic(cluster, topic, {0: [3, 1, 2]})
    pause_beyond_session(cluster, 3)
    led_by(cluster, TopicPartition(topic, 0), 1)
    in_sync(cluster, TopicPartition(topic, 0), [1, 2, 3])
    assert cluster.leader(topic) == 1


def test_controller_with_expired_session_resigns_and_can_be_elected_again(
    shared_cluster: Cluster,
) -> None:
    cluster = shared_cluster
    first = wait_until(cluster.controller_id, "a controller")
    pause_beyond_session(cluster, first)
    second = wait_until(cluster.controller_id, "another controller")
    assert second != first
    wait_until(lambda: first in cluster.live_brokers(), "the former one is back")
    wait_until(lambda: "Resigned as the controller" in cluster.output(first), "it has resigned")
    make_topic(cluster, "after-the-controller", {0: [first, second]})


def test_requests_with_an_old_broker_epoch_are_rejected(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    stale = ControllerFields(
        controller_id=2,
        controller_epoch=int(cluster.tree.get("/controller_epoch")[0]),
        broker_epoch=broker_epoch(cluster, 1) - 1,
    )
    requests: list[Request[Any]] = [
        LeaderAndIsrRequest(**stale),
        StopReplicaRequest(**stale),
        UpdateMetadataRequest(**stale),
    ]
    with WireClient(cluster.address(1)) as wire:
        for request in requests:
            answer: Any = wire.ask(request, request.versions[1])
            assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
