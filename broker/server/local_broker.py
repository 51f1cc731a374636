"""Applies the controller's requests to this broker, after reading the settings of new topics.

A partition's log is created with the settings of its topic, and any broker may have to describe
them. The settings that a topic is created with are not announced by a config change notification:
a broker reads them when the controller first mentions the topic.
"""

from broker.metadata.zk_config_manager import ZkConfigManager
from broker.model import Uuid
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from broker.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from broker.replica.controller_requests import ControllerRequests
from broker.tasks import Pauses


class ControlledBroker:
    """Implements the controller's LocalBroker."""

    def __init__(self, requests: ControllerRequests, configs: ZkConfigManager) -> None:
        self._requests = requests
        self._configs = configs

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Become leader or follower of partitions."""
        await self._configs.on_topics(await _topic_ids(request))
        return await self._requests.leader_and_isr(request)

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Update the metadata of brokers and partitions."""
        await self._configs.on_topics(await _topic_ids(request))
        return await self._requests.update_metadata(request)

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas, and delete those that are marked for deletion."""
        return await self._requests.stop_replica(request)


async def _topic_ids(request: LeaderAndIsrRequest | UpdateMetadataRequest) -> dict[str, Uuid]:
    pauses = Pauses()
    found = {}
    for topic in request.topic_states:
        await pauses.pause()
        found[topic.topic_name] = topic.topic_id
    return found
