"""The states a partition and a replica can be in, and from where each can be reached: two tables.

A partition:

    NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → NON_EXISTENT

NEW has replicas but no leader yet; ONLINE has one; OFFLINE has lost it. A new partition whose
replicas are all dead stays NEW.

A replica:

    NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → DELETION_STARTED → DELETION_SUCCESSFUL → NON_EXISTENT
                                     ↑              ↓
                                     └──── DELETION_INELIGIBLE

A deletion that fails, or whose broker is dead, waits as INELIGIBLE until it may be tried again.
"""

from enum import StrEnum
from typing import Final


class PartitionState(StrEnum):
    """Where a partition is in its life."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaState(StrEnum):
    """Where a replica is in its life."""

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
