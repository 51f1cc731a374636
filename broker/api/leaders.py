"""Where a partition's leader is by now: told along with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

from collections.abc import Collection

from broker.api.context import RequestContext
from broker.metadata_cache import NO_LEADER, BrokerEndpoint


def current_leader(context: RequestContext, topic: str, index: int) -> tuple[int, int]:
    """The leader's id and epoch as far as this broker knows; -1 and -1 if it does not."""
    known = context.services.metadata.topics.get(topic)
    if known is None or index >= len(known.partitions):
        return NO_LEADER, -1
    partition = known.partitions[index]
    return partition.leader, partition.leader_epoch


def leader_endpoints(context: RequestContext, leaders: Collection[int]) -> list[BrokerEndpoint]:
    """Where the client reaches those of the leaders that it can reach."""
    if not leaders:
        return []
    brokers = context.services.metadata.brokers_of(context.peer.listener_name)
    return [broker for broker in brokers if broker.broker_id in leaders]
