"""The states of partitions and replicas, and the transitions that are allowed: two tables.

Partitions:

    NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → NON_EXISTENT

A NEW partition has replicas and no leader yet; an ONLINE one has a leader; an OFFLINE one has lost
it. A new partition whose replicas are all dead stays NEW.

Replicas:

    NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → DELETION_STARTED → DELETION_SUCCESSFUL → NON_EXISTENT
                                     ↑              ↓
                                     └──── DELETION_INELIGIBLE

A deletion that fails, or whose broker is dead, stays INELIGIBLE until it can be started again.
"""

from enum import StrEnum
from typing import Final


class PartitionState(StrEnum):
    """The state of a partition; the value is Kafka's name, used in the log."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaState(StrEnum):
    """The state of a replica; the value is Kafka's name, used in the log."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


_STARTED_PARTITION: Final = frozenset(
    {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
)
PARTITION_CAME_FROM: Final = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: _STARTED_PARTITION,
    PartitionState.OFFLINE: _STARTED_PARTITION,
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}

_STARTED_REPLICA: Final = frozenset(
    {
        ReplicaState.NEW,
        ReplicaState.ONLINE,
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_INELIGIBLE,
    }
)
REPLICA_CAME_FROM: Final = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: _STARTED_REPLICA,
    ReplicaState.OFFLINE: _STARTED_REPLICA,
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset(
        {ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}
    ),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
