"""Consumer groups and their members."""

from dataclasses import dataclass

from broker.model import TopicPartition
from kctl.model.cluster import Broker

CONSUMER_PROTOCOL_TYPE = "consumer"

DEAD, EMPTY, STABLE = "Dead", "Empty", "Stable"


@dataclass(frozen=True)
class GroupListing:
    """A group in ListGroups; older clusters leave state and type empty."""

    group_id: str
    protocol_type: str
    state: str
    type: str

    @property
    def is_consumer_group(self) -> bool:
        """Whether it is a group of consumers, unlike those of Connect workers."""
        return self.protocol_type in (CONSUMER_PROTOCOL_TYPE, "")


@dataclass(frozen=True)
class Member:
    """A member and its assignment."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class Group:
    """A group as its coordinator describes it; the state of an unknown group is Dead."""

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]
    coordinator: Broker

    @property
    def exists(self) -> bool:
        """Whether the group exists."""
        return self.state != DEAD

    @property
    def has_coordinator(self) -> bool:
        """Whether a broker coordinates it; groups of old consumers are in ZooKeeper."""
        return self.coordinator.id >= 0
