"""Kafka's ControllerBrokerRequestBatch: the requests of one change, at most three per broker.

An event may change thousands of partitions. Their states are collected here, and `send` queues one
LeaderAndIsr, one UpdateMetadata and one StopReplica per broker, in this order, which is Kafka's: a
broker learns its role before the cluster learns of it, and stops a replica after the new leader is
known. A partition in a LeaderAndIsr is always in an UpdateMetadata to all brokers, too.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from broker.controller.controller_channel_manager import ControllerChannelManager
from broker.controller.controller_context import ControllerContext, LiveBroker
from broker.controller.leadership import (
    EPOCH_DURING_DELETE,
    Leadership,
)
from broker.errors import ErrorCode
from broker.metadata.znodes.brokers import Endpoint
from broker.model import LEADER_DURING_DELETE, TopicPartition, Uuid
from broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

logger = logging.getLogger("state.change")

_SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The index of each is its id on the wire."""


@dataclass(frozen=True)
class RequestSender:
    """The sender that the requests name, the channels, and the callbacks for responses."""

    controller_id: int
    controller_epoch: int
    listener_name: str
    """The inter-broker listener."""
    channels: ControllerChannelManager
    on_leader_and_isr: Callable[[int, int, Any], None]
    """Called with the broker's id, the broker epoch in the request, and the response."""
    on_stop_replica: Callable[[int, int, Any, frozenset[TopicPartition]], None]
    """As `on_leader_and_isr`, and with the partitions that the broker was to delete."""


class ControllerBrokerRequestBatch:
    """Collects requests; nothing is sent before `send`.

    What is added twice for a partition is merged: the state is the latest one, and a broker that
    was to create or delete the log still is. So a state machine may move a partition through
    several states within one event, and brokers only see the last one.

    Field `_leader_and_isr`: by broker, the partitions that it leads or follows.
    Field `_stop_replica`: by broker, the replicas that it stops or deletes.
    Field `_updated`: the brokers that get an UpdateMetadata.
    Field `_metadata`: the partitions in it, the same for all brokers.
    """

    def __init__(self, context: ControllerContext, sender: RequestSender) -> None:
        self._context = context
        self._sender = sender
        self._leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartitionState]] = {}
        self._stop_replica: dict[int, dict[TopicPartition, StopReplicaPartitionState]] = {}
        self._updated: set[int] = set()
        self._metadata: dict[TopicPartition, UpdateMetadataPartitionState] = {}

    def add_leader_and_isr(
        self, brokers: Iterable[int], partition: TopicPartition, *, is_new: bool = False
    ) -> None:
        """Send brokers a partition's leader and ISR.

        `is_new` lets them create the log in any log directory; otherwise a missing log means that
        its directory is offline.
        """
        state = self._context.leaderships[partition]
        assignment = self._context.assignment(partition)
        for broker_id in brokers:
            states = self._leader_and_isr.setdefault(broker_id, {})
            states[partition] = LeaderAndIsrPartitionState(
                topic_name=partition.topic,
                partition_index=partition.partition,
                controller_epoch=state.controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.isr),
                partition_epoch=state.partition_epoch,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding_replicas),
                removing_replicas=list(assignment.removing_replicas),
                is_new=is_new or (partition in states and states[partition].is_new),
                leader_recovery_state=int(state.is_recovering),
            )
        # Every broker answers Metadata requests, so all learn of a new leader, not only replicas.
        self.add_update_metadata(self._context.brokers, [partition])

    def add_stop_replica(
        self, brokers: Iterable[int], partition: TopicPartition, *, delete: bool
    ) -> None:
        """Let brokers stop a replica, and delete it if `delete` is set.

        The request has a leader epoch so that a delayed one does not stop a replica of a partition
        that was assigned to the broker again meanwhile.
        """
        for broker_id in brokers:
            states = self._stop_replica.setdefault(broker_id, {})
            states[partition] = StopReplicaPartitionState(
                partition_index=partition.partition,
                leader_epoch=self._context.stop_epoch(partition),
                delete_partition=delete
                or (partition in states and states[partition].delete_partition),
            )

    def add_update_metadata(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Send these brokers the live brokers and the states of partitions.

        A partition that has never had a leader is left out, as in Kafka: it has no leader-and-ISR
        yet, and clients do not see it until it has.
        """
        self._updated.update(brokers)
        for partition in partitions:
            state = self._context.leaderships.get(partition)
            if state is not None:
                self._metadata[partition] = self._metadata_of(partition, state)

    def _metadata_of(
        self, partition: TopicPartition, state: Leadership
    ) -> UpdateMetadataPartitionState:
        # For a topic that is being deleted the leader -2 lets brokers remove the partition.
        is_going = self._context.is_being_deleted(partition.topic)
        replicas = self._context.assignment(partition).replicas
        return UpdateMetadataPartitionState(
            topic_name=partition.topic,
            partition_index=partition.partition,
            controller_epoch=state.controller_epoch,
            leader=LEADER_DURING_DELETE if is_going else state.leader,
            leader_epoch=EPOCH_DURING_DELETE if is_going else state.leader_epoch,
            isr=list(state.isr),
            zk_version=state.partition_epoch,
            replicas=list(replicas),
            offline_replicas=[
                replica for replica in replicas if not self._context.is_online(replica, partition)
            ],
        )

    # Sending

    def send(self) -> None:
        """Queue the requests of all live brokers.

        Requests to a broker that died since they were collected are dropped: when it registers
        again it gets the states of all its replicas. A queue per broker keeps the order; `send`
        itself does not wait.
        """
        live = self._context.brokers
        for broker_id, states in self._leader_and_isr.items():
            if broker_id in live:
                self._send_leader_and_isr(broker_id, states)
        self._send_update_metadata(self._updated & live.keys())
        for broker_id, stopped in self._stop_replica.items():
            if broker_id in live:
                self._send_stop_replica(broker_id, stopped)

    def _send_leader_and_isr(
        self, broker_id: int, states: dict[TopicPartition, LeaderAndIsrPartitionState]
    ) -> None:
        # Followers need the addresses of their leaders before the first UpdateMetadata arrives.
        leaders = {state.leader for state in states.values()}
        topics = _by_topic(states)
        request = LeaderAndIsrRequest(
            controller_id=self._sender.controller_id,
            controller_epoch=self._sender.controller_epoch,
            broker_epoch=self._context.brokers[broker_id].broker_epoch,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=topic, topic_id=self._topic_id(topic), partition_states=listed
                )
                for topic, listed in topics.items()
            ],
            live_leaders=self._live_leaders(leaders),
        )
        logger.debug("Sending LeaderAndIsr broker=%s partitions=%s", broker_id, len(states))
        self._sender.channels.send(
            broker_id,
            request,
            lambda response: self._sender.on_leader_and_isr(
                broker_id, request.broker_epoch, response
            ),
        )

    def _live_leaders(self, leaders: Collection[int]) -> list[LeaderAndIsrLiveLeader]:
        found = []
        for broker_id in leaders & self._context.brokers.keys():
            endpoint = endpoint_of(self._context.brokers[broker_id], self._sender.listener_name)
            if endpoint is not None:
                found.append(
                    LeaderAndIsrLiveLeader(
                        broker_id=broker_id, host_name=endpoint.host, port=endpoint.port
                    )
                )
        return found

    def _send_update_metadata(self, brokers: Collection[int]) -> None:
        if not brokers:
            return
        # Only the broker epoch differs between brokers: the rest is built once.
        topics = [
            UpdateMetadataTopicState(
                topic_name=topic, topic_id=self._topic_id(topic), partition_states=listed
            )
            for topic, listed in _by_topic(self._metadata).items()
        ]
        live = [_described(id_, broker) for id_, broker in self._context.brokers.items()]
        for broker_id in sorted(brokers):
            request = UpdateMetadataRequest(
                controller_id=self._sender.controller_id,
                controller_epoch=self._sender.controller_epoch,
                broker_epoch=self._context.brokers[broker_id].broker_epoch,
                topic_states=topics,
                live_brokers=live,
            )
            self._sender.channels.send(broker_id, request, _log_if_refused(broker_id))

    def _send_stop_replica(
        self, broker_id: int, stopped: dict[TopicPartition, StopReplicaPartitionState]
    ) -> None:
        deleted = frozenset(name for name, state in stopped.items() if state.delete_partition)
        request = StopReplicaRequest(
            controller_id=self._sender.controller_id,
            controller_epoch=self._sender.controller_epoch,
            broker_epoch=self._context.brokers[broker_id].broker_epoch,
            topic_states=[
                StopReplicaTopicState(topic_name=topic, partition_states=listed)
                for topic, listed in _by_topic(stopped).items()
            ],
        )
        logger.debug("Sending StopReplica broker=%s replicas=%s", broker_id, len(stopped))
        self._sender.channels.send(
            broker_id,
            request,
            lambda response: self._sender.on_stop_replica(
                broker_id, request.broker_epoch, response, deleted
            ),
        )

    def _topic_id(self, topic: str) -> Uuid:
        return self._context.topic_ids.get(topic, Uuid.ZERO)


def endpoint_of(broker: LiveBroker, listener_name: str) -> Endpoint | None:
    """A broker's address on a listener; None if it does not have that listener."""
    endpoints = broker.registration.endpoints
    return next((e for e in endpoints if e.listener_name == listener_name), None)


def _described(broker_id: int, broker: LiveBroker) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker_id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener_name,
                security_protocol=_SECURITY_PROTOCOLS.index(endpoint.security_protocol),
            )
            for endpoint in broker.registration.endpoints
        ],
        rack=broker.registration.rack,
    )


def _by_topic(states: dict[TopicPartition, Any]) -> dict[str, list[Any]]:
    topics: dict[str, list[Any]] = {}
    for partition, state in states.items():
        topics.setdefault(partition.topic, []).append(state)
    return topics


def _log_if_refused(broker_id: int) -> Callable[[Any], None]:
    def log(response: Any) -> None:
        if response.error_code:
            logger.error(
                "Broker rejected UpdateMetadata broker=%s error=%s",
                broker_id,
                ErrorCode.name_of(response.error_code),
            )

    return log
