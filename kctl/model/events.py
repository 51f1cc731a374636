"""Changes of a cluster over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kctl.model.cluster import Cluster
from kctl.model.topics import Topic


class EventKind(StrEnum):
    """What changed."""

    BROKER_JOINED = "broker-joined"
    BROKER_LEFT = "broker-left"
    CONTROLLER = "controller"
    TOPIC_CREATED = "topic-created"
    TOPIC_DELETED = "topic-deleted"
    PARTITIONS_ADDED = "partitions-added"
    LEADER = "leader"
    ISR_SHRUNK = "isr-shrunk"
    ISR_EXPANDED = "isr-expanded"
    ISR_CHANGED = "isr-changed"
    REPLICAS = "replicas"
    UNREACHABLE = "unreachable"
    REACHABLE = "reachable"
    NODE = "node"
    """The present state of a watched znode."""
    NODE_CREATED = "node-created"
    NODE_DELETED = "node-deleted"
    NODE_DATA = "node-data"
    CHILD_ADDED = "child-added"
    CHILD_REMOVED = "child-removed"


@dataclass(frozen=True)
class Snapshot:
    """A cluster at one moment."""

    cluster: Cluster
    topics: Sequence[Topic]
    controller_epoch: int | None = None
    """None if it is unknown."""


@dataclass(frozen=True)
class Event:
    """One change; `before` and `after` are None where there is no such value."""

    kind: EventKind
    subject: str
    """`broker 1`, `controller`, `orders` or `orders-0`."""
    before: object = None
    after: object = None
    detail: str = ""
