"""All replication throttles of a cluster, and which of them have leaked."""

import asyncio

from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.configs import describe_configs
from kctl.admin.reassignments import list_reassignments
from kctl.admin.topics import find_topics
from kctl.model.configs import Entity, EntityType
from kctl.model.throttles import Throttle
from kctl.plans.throttles import throttles_in


async def find_throttles(client: Client) -> list[Throttle]:
    """Every throttle of every broker and topic, brokers first."""
    cluster, topics, in_progress = await asyncio.gather(
        describe_cluster(client), find_topics(client), list_reassignments(client)
    )
    entities = [Entity(EntityType.BROKERS, str(broker.id)) for broker in cluster.brokers]
    entities += [Entity(EntityType.TOPICS, topic.name) for topic in topics]
    configs = await describe_configs(client, entities, synonyms=False)
    ordered = {entity: configs[entity] for entity in entities if entity in configs}
    return throttles_in(ordered, in_progress)
