"""Consumer groups and their members."""

from dataclasses import dataclass
from enum import StrEnum

from broker.model import TopicPartition
from kctl.model.cluster import Broker

CONSUMER_PROTOCOL_TYPE = "consumer"

DEAD, EMPTY, STABLE = "Dead", "Empty", "Stable"


class GroupType(StrEnum):
    """Protocols of groups: before 4.0, of KIP-848, of KIP-932 and of KIP-1071."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


NEW_TYPES = (GroupType.SHARE, GroupType.STREAMS)
"""Types whose groups are not consumer groups."""


@dataclass(frozen=True)
class GroupListing:
    """A group in ListGroups; older clusters leave state and type empty."""

    group_id: str
    protocol_type: str
    state: str
    type: str

    @property
    def is_consumer_group(self) -> bool:
        """Whether it is a group of consumers, unlike those of Connect workers and share groups."""
        is_new = self.type.lower() in NEW_TYPES
        return self.protocol_type in (CONSUMER_PROTOCOL_TYPE, "") and not is_new

    @property
    def reads_topics(self) -> bool:
        """Whether its members read topics: consumer, share and streams groups."""
        return self.is_consumer_group or self.type.lower() in NEW_TYPES


@dataclass(frozen=True)
class Member:
    """A member and its assignment."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None
    """The member epoch of the new protocols; None in classic groups."""
    target: tuple[TopicPartition, ...] | None = None
    """The assignment that the coordinator wants the member to have (KIP-848)."""


@dataclass(frozen=True)
class Group:
    """A group as its coordinator describes it; the state of an unknown group is Dead."""

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]
    coordinator: Broker
    type: GroupType = GroupType.CLASSIC
    epoch: int | None = None
    """The group epoch of the new protocols; None in classic groups."""
    assignment_epoch: int | None = None

    @property
    def is_share_group(self) -> bool:
        """Whether it is a share group, which has no committed offsets but start offsets."""
        return self.type is GroupType.SHARE

    @property
    def exists(self) -> bool:
        """Whether the group exists."""
        return self.state != DEAD

    @property
    def has_coordinator(self) -> bool:
        """Whether a broker coordinates it; groups of old consumers are in ZooKeeper."""
        return self.coordinator.id >= 0
