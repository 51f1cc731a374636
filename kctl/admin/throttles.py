"""Throttles of replication in a cluster: found, set, and taken away one by one."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.configs import (
    Change,
    Config,
    Entity,
    EntityType,
    Operation,
    alter_configs,
    describe_configs,
)
from kctl.admin.reassignments import list_reassignments
from kctl.admin.topics import find_topics
from kctl.outcomes import Outcome
from kctl.plans.throttles import Throttle, throttles_in


async def find_throttles(client: Client) -> list[Throttle]:
    """Every throttle of every broker and topic, brokers first."""
    cluster, topics, moving = await asyncio.gather(
        describe_cluster(client), find_topics(client), list_reassignments(client)
    )
    entities = [Entity(EntityType.BROKERS, str(broker.id)) for broker in cluster.brokers]
    entities += [Entity(EntityType.TOPICS, topic.name) for topic in topics]
    configs = await describe_configs(client, entities, synonyms=False)
    return throttles_in({entity: configs[entity] for entity in entities}, moving)


async def own_configs(client: Client, entities: Iterable[Entity]) -> dict[Entity, list[Config]]:
    """The settings of these entities as they are before something is changed."""
    return await describe_configs(client, list(entities), synonyms=False)


async def change_each(client: Client, changes: Mapping[Entity, Sequence[Change]]) -> list[Outcome]:
    """Make the changes, entity by entity; one that fails keeps none of the others from theirs.

    That is what clearing needs: a broker that is down must not keep the throttle of one that is
    up. What was to be deleted from a topic that is gone is deleted.
    """
    answers = await asyncio.gather(*(_change(client, e, some) for e, some in changes.items()))
    return list(answers)


async def _change(client: Client, entity: Entity, changes: Sequence[Change]) -> Outcome:
    try:
        (answer,) = await alter_configs(client, {entity: changes})
    except (OSError, TimeoutError, ApiError) as error:
        return Outcome(str(entity), ErrorCode.REQUEST_TIMED_OUT, str(error))
    is_deletion = all(change.operation is Operation.DELETE for change in changes)
    if is_deletion and answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Outcome(str(entity))
    return answer
