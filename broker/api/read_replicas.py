"""The replica that a consumer had better read from (KIP-392): one in its own rack, if it has it.

Kafka lets one plug in a class (`replica.selector.class`). The two that it brings are known here:
without one, or with LeaderSelector, everybody reads from the leader.
"""

from typing import Final

from broker.api.context import RequestContext
from broker.replica.in_sync import RemoteReplica
from broker.replica.partition import Partition

_RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_read_replica(
    partition: Partition, offset: int, rack_id: str, context: RequestContext
) -> int | None:
    """The follower to read `offset` from; None if the leader may as well serve it."""
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
    """Who has most, then who was caught up last."""
    return replica.log_end_offset, replica.last_caught_up_ms, replica.broker_id
