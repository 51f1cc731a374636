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

LOOKS = 50
LOOK_AGAIN_S = 0.1
"""How often and after which pause to look whether a change has reached the brokers."""


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


async def change_and_see(
    client: Client, changes: Mapping[Entity, Sequence[Change]]
) -> list[Outcome]:
    """The same, and wait until the brokers say so themselves: they learn of it a moment later."""
    outcomes = await change_each(client, changes)
    made = [e for e, one in zip(changes, outcomes, strict=True) if not one.error]
    for _ in range(LOOKS):
        present = await _described(client, made)
        made = [entity for entity in made if not _is_made(entity, changes[entity], present)]
        if not made:
            break
        await asyncio.sleep(LOOK_AGAIN_S)
    late = {str(entity) for entity in made}
    message = "the broker still says otherwise"
    return [
        Outcome(one.name, ErrorCode.REQUEST_TIMED_OUT, message) if one.name in late else one
        for one in outcomes
    ]


def _soon(client: Client) -> asyncio.Timeout:
    """Well before the whole question times out: a broker that hangs must not take it along."""
    return asyncio.timeout(client.request_timeout_s / 3)


async def _described(client: Client, entities: Sequence[Entity]) -> dict[Entity, list[Config]]:
    """Settings; of a topic that is gone, or a broker that does not answer, none at all."""
    found: dict[Entity, list[Config]] = {}
    for entity in entities:
        try:
            async with _soon(client):
                found |= await own_configs(client, [entity])
        except (OSError, TimeoutError, ApiError):
            found[entity] = []
    return found


def _is_made(
    entity: Entity, changes: Sequence[Change], present: Mapping[Entity, Sequence[Config]]
) -> bool:
    own = {c.name: c.value for c in present[entity] if c.source == entity.own_source}
    return all(own.get(change.name) == change.value for change in changes)


async def _change(client: Client, entity: Entity, changes: Sequence[Change]) -> Outcome:
    try:
        async with _soon(client):
            (answer,) = await alter_configs(client, {entity: changes})
    except TimeoutError:
        return Outcome(str(entity), ErrorCode.REQUEST_TIMED_OUT, "no answer")
    except (OSError, ApiError) as error:
        return Outcome(str(entity), ErrorCode.REQUEST_TIMED_OUT, str(error))
    is_deletion = all(change.operation is Operation.DELETE for change in changes)
    if is_deletion and answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Outcome(str(entity))
    return answer
