"""Replication throttles: the configs that set them, restore them, and find leaked ones.

Two broker configs hold the rate; two topic configs list the throttled replicas, as
`partition:broker,…`. A throttle has an effect only if both are set.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kctl.model.assignments import Assignment
from kctl.model.configs import Change, Config, Entity, EntityType, Operation
from kctl.model.reassignments import Reassignments
from kctl.model.throttles import (
    BROKER_THROTTLES,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIRS_RATE,
    TOPIC_THROTTLES,
    Throttle,
)

EVERY_REPLICA: Final = "*"

ConfigChanges = Mapping[Entity, Sequence[Change]]


def throttles_in(
    configs: Mapping[Entity, Sequence[Config]], in_progress: Reassignments | None
) -> list[Throttle]:
    """All throttles in these configs; leaked ones have no reassignment in progress.

    If the reassignments are not known (None), neither is which throttles have leaked.
    """
    active_topics = {partition.topic for partition in in_progress or ()}
    found = []
    for entity, settings in configs.items():
        is_topic = entity.type is EntityType.TOPICS
        is_needed = entity.name in active_topics if is_topic else bool(in_progress)
        leaked = None if in_progress is None else not is_needed
        names = TOPIC_THROTTLES if is_topic else BROKER_THROTTLES
        found += [
            Throttle(entity, config.name, config.value or "", leaked)
            for config in settings
            if config.name in names and config.source == entity.own_source and config.value
        ]
    return found


@dataclass(frozen=True)
class Endpoints:
    """Brokers that a reassigned partition is copied from and to."""

    sources: frozenset[int]
    destinations: frozenset[int]


EndpointsByTopic = Mapping[str, Mapping[int, Endpoints]]
"""Endpoints of partitions, by topic and partition id."""


def endpoints_of(
    in_progress: Reassignments, wanted: Assignment, current: Assignment
) -> EndpointsByTopic:
    """Endpoints of the reassignments in progress and of those that `wanted` will start.

    A partition with a reassignment in progress keeps its sources.
    """
    endpoints: dict[str, dict[int, Endpoints]] = defaultdict(dict)
    for (topic, partition), one in in_progress.items():
        endpoints[topic][partition] = Endpoints(frozenset(one.sources), frozenset(one.adding))
    for key, replicas in wanted.items():
        active = endpoints[key.topic].get(key.partition)
        sources = active.sources if active else frozenset(current[key])
        endpoints[key.topic][key.partition] = Endpoints(sources, frozenset(replicas) - sources)
    return endpoints


def topic_changes(endpoints: EndpointsByTopic) -> dict[Entity, list[Change]]:
    """Topic configs that list the replicas of these partitions; sorted as strings, as in Kafka."""
    changes = {}
    for topic, partitions in endpoints.items():
        sources = {f"{p}:{broker}" for p, one in partitions.items() for broker in one.sources}
        targets = {f"{p}:{broker}" for p, one in partitions.items() for broker in one.destinations}
        changes[Entity(EntityType.TOPICS, topic)] = [
            Change(LEADER_REPLICAS, Operation.SET, ",".join(sorted(sources))),
            Change(FOLLOWER_REPLICAS, Operation.SET, ",".join(sorted(targets))),
        ]
    return changes


def every_replica_changes(topics: Iterable[str]) -> dict[Entity, list[Change]]:
    """Topic configs that throttle all replicas."""
    return {
        Entity(EntityType.TOPICS, topic): [
            Change(name, Operation.SET, EVERY_REPLICA) for name in TOPIC_THROTTLES
        ]
        for topic in topics
    }


def brokers_of(endpoints: EndpointsByTopic) -> list[int]:
    """All sources and destinations, sorted."""
    found = {
        broker
        for partitions in endpoints.values()
        for one in partitions.values()
        for broker in one.sources | one.destinations
    }
    return sorted(found)


def destinations_of(endpoints: EndpointsByTopic) -> set[int]:
    """All brokers that replicas are copied to."""
    return {
        broker
        for partitions in endpoints.values()
        for one in partitions.values()
        for broker in one.destinations
    }


def rate_changes(
    brokers: Iterable[int], rate: int | None, log_dirs_rate: int | None = None
) -> dict[Entity, list[Change]]:
    """Broker configs that set the rates, in bytes per second."""
    wanted = {LEADER_RATE: rate, FOLLOWER_RATE: rate, LOG_DIRS_RATE: log_dirs_rate}
    changes = [
        Change(name, Operation.SET, str(value))
        for name, value in wanted.items()
        if value is not None
    ]
    return {Entity(EntityType.BROKERS, str(broker)): changes for broker in brokers}


def clear_all_changes(brokers: Iterable[int], topics: Iterable[str]) -> dict[Entity, list[Change]]:
    """Deletes all throttles of these brokers and topics, as Kafka's tool does after a move."""
    names = {Entity(EntityType.BROKERS, str(broker)): BROKER_THROTTLES for broker in brokers}
    return {
        **{entity: _deletions(some) for entity, some in names.items()},
        **{Entity(EntityType.TOPICS, topic): _deletions(TOPIC_THROTTLES) for topic in topics},
    }


def deletions_of(throttles: Iterable[Throttle]) -> dict[Entity, list[Change]]:
    """Deletes exactly these throttles."""
    changes: dict[Entity, list[Change]] = defaultdict(list)
    for throttle in throttles:
        changes[throttle.entity].append(Change(throttle.config, Operation.DELETE))
    return changes


def merged(*all_changes: ConfigChanges) -> dict[Entity, list[Change]]:
    """All changes in one mapping; those of the same entity are concatenated."""
    found: dict[Entity, list[Change]] = defaultdict(list)
    for changes in all_changes:
        for entity, some in changes.items():
            found[entity] += some
    return found


def restoring_changes(
    changes: ConfigChanges, before: Mapping[Entity, Sequence[Config]]
) -> dict[Entity, list[Change]]:
    """Undoes `changes`: restores the values in `before`, or deletes the config."""
    return {
        entity: [_restored(entity, change.name, before.get(entity, ())) for change in some]
        for entity, some in changes.items()
    }


def _restored(entity: Entity, name: str, before: Sequence[Config]) -> Change:
    own = [c.value for c in before if c.name == name and c.source == entity.own_source and c.value]
    return Change(name, Operation.SET, own[0]) if own else Change(name, Operation.DELETE)


def _deletions(names: Iterable[str]) -> list[Change]:
    return [Change(name, Operation.DELETE) for name in names]
