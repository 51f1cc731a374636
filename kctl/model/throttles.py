"""Replication throttles: the configs that hold them."""

from dataclasses import dataclass
from typing import Final

from kctl.model.configs import Entity

LEADER_RATE: Final = "leader.replication.throttled.rate"

FOLLOWER_RATE: Final = "follower.replication.throttled.rate"

LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"

FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

BROKER_THROTTLES: Final = (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)

TOPIC_THROTTLES: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)


@dataclass(frozen=True)
class Throttle:
    """A config that throttles replication."""

    entity: Entity
    config: str
    value: str
    leaked: bool | None
    """Whether no reassignment in progress needs it; None if the controller did not answer."""
