"""Throttles of replication: which replicas of a move they are for, and which have leaked. Pure.

Two settings of brokers hold a rate; two settings of topics name the replicas that it is for, as
`partition:broker,…`. A rate without replicas slows nothing, and replicas without a rate neither.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kctl.admin.configs import Change, Config, Entity, EntityType, Operation
from kctl.admin.reassignments import Moving
from kctl.plans.reassign_draft import Assignment
from kctl.tables import Column

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
BROKER_THROTTLES: Final = (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)
TOPIC_THROTTLES: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
EVERY_REPLICA: Final = "*"

COLUMNS = [Column("entity"), Column("config"), Column("value"), Column("leaked")]

Changes = Mapping[Entity, Sequence[Change]]


@dataclass(frozen=True)
class Throttle:
    """One setting that slows replication."""

    entity: Entity
    config: str
    value: str
    leaked: bool
    """Whether nothing is moving that it could be for."""

    def row(self) -> dict[str, object]:
        """The throttle as a row of COLUMNS."""
        return {
            "entity": str(self.entity),
            "config": self.config,
            "value": self.value,
            "leaked": self.leaked,
        }


def throttles_in(configs: Mapping[Entity, Sequence[Config]], moving: Moving) -> list[Throttle]:
    """The throttles that were set, with those that have outlived their reassignment."""
    moving_topics = {partition.topic for partition in moving}
    found = []
    for entity, settings in configs.items():
        is_topic = entity.type is EntityType.TOPICS
        is_needed = entity.name in moving_topics if is_topic else bool(moving)
        names = TOPIC_THROTTLES if is_topic else BROKER_THROTTLES
        found += [
            Throttle(entity, config.name, config.value or "", not is_needed)
            for config in settings
            if config.name in names and config.source == entity.own_source and config.value
        ]
    return found


@dataclass(frozen=True)
class MoveEnds:
    """Brokers that a partition's data comes from and goes to."""

    sources: frozenset[int]
    destinations: frozenset[int]


Ends = Mapping[str, Mapping[int, MoveEnds]]
"""By topic and partition."""


def ends_of(moving: Moving, wanted: Assignment, current: Assignment) -> Ends:
    """The ends of all moves: those under way, and those that `wanted` will begin.

    A partition that is moving already keeps the sources it has.
    """
    ends: dict[str, dict[int, MoveEnds]] = defaultdict(dict)
    for (topic, partition), one in moving.items():
        ends[topic][partition] = MoveEnds(frozenset(one.sources), frozenset(one.adding))
    for key, replicas in wanted.items():
        under_way = ends[key.topic].get(key.partition)
        sources = under_way.sources if under_way else frozenset(current[key])
        ends[key.topic][key.partition] = MoveEnds(sources, frozenset(replicas) - sources)
    return ends


def topic_changes(ends: Ends) -> dict[Entity, list[Change]]:
    """Settings of topics that name the replicas of these moves, sorted as text as Kafka does."""
    changes = {}
    for topic, partitions in ends.items():
        sources = {f"{p}:{broker}" for p, ends_ in partitions.items() for broker in ends_.sources}
        targets = {
            f"{p}:{broker}" for p, ends_ in partitions.items() for broker in ends_.destinations
        }
        changes[Entity(EntityType.TOPICS, topic)] = [
            Change(LEADER_REPLICAS, Operation.SET, ",".join(sorted(sources))),
            Change(FOLLOWER_REPLICAS, Operation.SET, ",".join(sorted(targets))),
        ]
    return changes


def every_replica_changes(topics: Iterable[str]) -> dict[Entity, list[Change]]:
    """Settings that throttle all replicas of topics."""
    return {
        Entity(EntityType.TOPICS, topic): [
            Change(name, Operation.SET, EVERY_REPLICA) for name in TOPIC_THROTTLES
        ]
        for topic in topics
    }


def brokers_of(ends: Ends) -> list[int]:
    """All brokers at the ends of these moves."""
    found = {
        broker
        for partitions in ends.values()
        for one in partitions.values()
        for broker in one.sources | one.destinations
    }
    return sorted(found)


def rate_changes(
    brokers: Iterable[int], rate: int | None, log_dirs_rate: int | None = None
) -> dict[Entity, list[Change]]:
    """Settings of brokers that hold the rate, in bytes per second."""
    wanted = {LEADER_RATE: rate, FOLLOWER_RATE: rate, LOG_DIRS_RATE: log_dirs_rate}
    changes = [
        Change(name, Operation.SET, str(value))
        for name, value in wanted.items()
        if value is not None
    ]
    return {Entity(EntityType.BROKERS, str(broker)): changes for broker in brokers}


def clearing(brokers: Iterable[int], topics: Iterable[str]) -> dict[Entity, list[Change]]:
    """What Kafka's tool does at the end: all throttles of these brokers and topics are deleted."""
    names = {Entity(EntityType.BROKERS, str(broker)): BROKER_THROTTLES for broker in brokers}
    return {
        **{entity: _deletions(some) for entity, some in names.items()},
        **{Entity(EntityType.TOPICS, topic): _deletions(TOPIC_THROTTLES) for topic in topics},
    }


def deletions_of(throttles: Iterable[Throttle]) -> dict[Entity, list[Change]]:
    """What takes these very throttles away."""
    changes: dict[Entity, list[Change]] = defaultdict(list)
    for throttle in throttles:
        changes[throttle.entity].append(Change(throttle.config, Operation.DELETE))
    return changes


def merged(*all_changes: Changes) -> dict[Entity, list[Change]]:
    """Changes of several kinds as one; those of the same entity come together."""
    found: dict[Entity, list[Change]] = defaultdict(list)
    for changes in all_changes:
        for entity, some in changes.items():
            found[entity] += some
    return found


def undoing(
    changes: Changes, before: Mapping[Entity, Sequence[Config]]
) -> dict[Entity, list[Change]]:
    """What takes `changes` back: the values that were there before, or none."""
    return {
        entity: [_restored(entity, change.name, before.get(entity, ())) for change in some]
        for entity, some in changes.items()
    }


def _restored(entity: Entity, name: str, before: Sequence[Config]) -> Change:
    own = [c.value for c in before if c.name == name and c.source == entity.own_source and c.value]
    return Change(name, Operation.SET, own[0]) if own else Change(name, Operation.DELETE)


def _deletions(names: Iterable[str]) -> list[Change]:
    return [Change(name, Operation.DELETE) for name in names]
