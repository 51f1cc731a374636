"""The preferred read replica of a consumer (KIP-392): one in its own rack that has the offset.

In Kafka `replica.selector.class` names any class. Here only the two that Kafka contains are known:
with LeaderSelector, or without a setting, all consumers read from the leader.
"""

from typing import Final

from broker.api.context import RequestContext
from broker.replica.in_sync import RemoteReplica
from broker.replica.partition import Partition

_RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_read_replica(
    partition: Partition, offset: int, rack_id: str, context: RequestContext
) -> int | None:
    """The follower that should serve `offset`; None if the leader should."""
    services = context.services
    if (
        services.config.replica_selector_class != _RACK_AWARE
        or not rack_id
        or not partition.is_leader
    ):
        return None
    racks = {b.broker_id: b.rack for b in services.metadata.brokers_of(context.peer.listener_name)}
    if racks.get(partition.broker_id) == rack_id:
        return None
    nearby = [
        replica
        for replica in partition.followers.values()
        if racks.get(replica.broker_id) == rack_id
        and replica.log_start_offset <= offset <= replica.log_end_offset
    ]
    return max(nearby, key=_merit).broker_id if nearby else None


def _merit(replica: RemoteReplica) -> tuple[int, int, int]:
    """The replica with the largest log end offset, then the one that was caught up last."""
    return replica.log_end_offset, replica.last_caught_up_ms, replica.broker_id
