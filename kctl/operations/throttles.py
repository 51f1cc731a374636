"""All replication throttles of a cluster, and which of them have leaked."""

import asyncio

from broker.net.client import Client
from kctl.admin.broker_queries import SCOPE, BrokerUnavailable
from kctl.admin.cluster import describe_cluster
from kctl.admin.configs import describe_configs
from kctl.admin.reassignments import list_reassignments
from kctl.admin.topics import find_topics
from kctl.model.configs import Entity, EntityType
from kctl.model.reassignments import Reassignments
from kctl.model.throttles import Throttle
from kctl.plans.throttles import throttles_in


async def find_throttles(client: Client) -> list[Throttle]:
    """Every throttle of every broker and topic, brokers first.

    In a partial query, those of brokers that do not answer are missing.
    """
    cluster, topics, in_progress = await asyncio.gather(
        describe_cluster(client), find_topics(client), _in_progress(client)
    )
    entities = [Entity(EntityType.BROKERS, str(broker.id)) for broker in cluster.brokers]
    entities += [Entity(EntityType.TOPICS, topic.name) for topic in topics]
    configs = await describe_configs(client, entities, synonyms=False)
    ordered = {entity: configs[entity] for entity in entities if entity in configs}
    return throttles_in(ordered, in_progress)


async def _in_progress(client: Client) -> Reassignments | None:
    """The reassignments; None if the controller does not answer in a partial query."""
    try:
        return await list_reassignments(client)
    except BrokerUnavailable:
        if SCOPE.get().is_partial:
            return None
        raise
