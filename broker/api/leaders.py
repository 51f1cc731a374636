"""The current leader of a partition, for responses with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

from collections.abc import Collection

from broker.api.context import RequestContext
from broker.metadata_cache import BrokerEndpoint
from broker.model import NO_LEADER


def current_leader(context: RequestContext, topic: str, index: int) -> tuple[int, int]:
    """Id and epoch of the leader in this broker's metadata; -1 and -1 if it is unknown."""
    partition = context.services.metadata.partition(topic, index)
    if partition is None:
        return NO_LEADER, -1
    return partition.leader, partition.leader_epoch


def leader_endpoints(context: RequestContext, leaders: Collection[int]) -> list[BrokerEndpoint]:
    """The endpoints of leaders on the client's listener; leaders without one are left out."""
    if not leaders:
        return []
    brokers = context.services.metadata.brokers_of(context.peer.listener_name)
    return [broker for broker in brokers if broker.broker_id in leaders]
