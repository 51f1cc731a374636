"""Config changes of throttles, made entity by entity and verified on the brokers."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from kctl.admin.configs import alter_configs, describe_configs
from kctl.model.configs import Change, Config, Entity, Operation
from kctl.model.outcomes import Outcome

VERIFY_POLLS = 50
VERIFY_PAUSE_S = 0.1
"""How often, and with which pause, to check whether a change has reached the brokers."""


async def own_configs(client: Client, entities: Iterable[Entity]) -> dict[Entity, list[Config]]:
    """The current configs of these entities, without synonyms."""
    return await describe_configs(client, list(entities), synonyms=False)


async def alter_each(client: Client, changes: Mapping[Entity, Sequence[Change]]) -> list[Outcome]:
    """Make the changes entity by entity; the failure of one does not affect the others.

    Clearing throttles relies on it: a broker that is down must not keep the throttles of the
    others in place. Deleting configs of a topic that no longer exists counts as success.
    """
    answers = await asyncio.gather(*(_alter(client, e, some) for e, some in changes.items()))
    return list(answers)


async def alter_and_verify(
    client: Client, changes: Mapping[Entity, Sequence[Change]]
) -> list[Outcome]:
    """Like `alter_each`, and wait until the brokers report the new values themselves."""
    outcomes = await alter_each(client, changes)
    pending = [e for e, one in zip(changes, outcomes, strict=True) if not one.error]
    for _ in range(VERIFY_POLLS):
        present = await _described(client, pending)
        pending = [e for e in pending if not _is_applied(e, changes[e], present)]
        if not pending:
            break
        await asyncio.sleep(VERIFY_PAUSE_S)
    late = {str(entity) for entity in pending}
    message = "the broker still reports the old value"
    return [
        Outcome(one.name, ErrorCode.REQUEST_TIMED_OUT, message) if one.name in late else one
        for one in outcomes
    ]


def _per_broker_timeout(client: Client) -> asyncio.Timeout:
    """Shorter than the timeout of the whole query, so that one hung broker does not fail it."""
    return asyncio.timeout(client.request_timeout_s / 3)


async def _described(client: Client, entities: Sequence[Entity]) -> dict[Entity, list[Config]]:
    """Configs; empty for a deleted topic and for a broker that does not answer."""
    found: dict[Entity, list[Config]] = {}
    for entity in entities:
        try:
            async with _per_broker_timeout(client):
                found |= await own_configs(client, [entity])
        except (OSError, TimeoutError, ApiError):
            found[entity] = []
    return found


def _is_applied(
    entity: Entity, changes: Sequence[Change], present: Mapping[Entity, Sequence[Config]]
) -> bool:
    own = {c.name: c.value for c in present[entity] if c.source == entity.own_source}
    return all(own.get(change.name) == change.value for change in changes)


async def _alter(client: Client, entity: Entity, changes: Sequence[Change]) -> Outcome:
    try:
        async with _per_broker_timeout(client):
            (answer,) = await alter_configs(client, {entity: changes})
    except TimeoutError:
        return Outcome(str(entity), ErrorCode.REQUEST_TIMED_OUT, "no answer")
    except (OSError, ApiError) as error:
        return Outcome(str(entity), ErrorCode.REQUEST_TIMED_OUT, str(error))
    is_deletion = all(change.operation is Operation.DELETE for change in changes)
    if is_deletion and answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Outcome(str(entity))
    return answer
