"""What the controller tells this broker, with the settings of topics read before they are needed.

A partition's log is made with the settings of its topic, and any broker may be asked to describe
them. Nobody announces the settings that a topic is created with: whoever hears of a topic for the
first time reads them.
"""

from broker.metadata.config_watch import ConfigWatch
from broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from broker.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from broker.replica.controller_requests import ControllerRequests


class ControlledBroker:
    """See LocalBroker: this broker, as the controller sees it."""

    def __init__(self, requests: ControllerRequests, configs: ConfigWatch) -> None:
        self._requests = requests
        self._configs = configs

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Lead and follow partitions."""
        await self._configs.on_topics(
            {topic.topic_name: topic.topic_id for topic in request.topic_states}
        )
        return await self._requests.leader_and_isr(request)

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Take note of brokers and partitions."""
        await self._configs.on_topics(
            {topic.topic_name: topic.topic_id for topic in request.topic_states}
        )
        return await self._requests.update_metadata(request)

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas, and delete them where that is wanted."""
        return await self._requests.stop_replica(request)
