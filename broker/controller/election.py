"""Who leads a partition whose leader is gone (Kafka's offline partition election): pure."""

from collections.abc import Collection
from dataclasses import replace

from broker.metadata_cache import NO_LEADER
from broker.model import LeaderAndIsr


def elect_if_offline(
    state: LeaderAndIsr, live_brokers: Collection[int], *, allow_unclean: bool
) -> LeaderAndIsr:
    """The state with a live leader; unchanged if it has one, or if nobody can lead.

    A. a live member of the ISR leads: no record is lost, and the dead leave the ISR;
    B. only others are alive: one of them leads if that is allowed, and records may be lost;
    C. nobody may lead: the partition has no leader until somebody comes back.
    """
    if state.leader in live_brokers:
        return state
    live = [replica for replica in state.replicas if replica in live_brokers]
    in_sync = [replica for replica in live if replica in state.isr]
    epoch = state.leader_epoch + 1
    if in_sync:  # A
        isr = tuple(replica for replica in state.isr if replica in live_brokers)
        return replace(state, leader=in_sync[0], leader_epoch=epoch, isr=isr)
    if live and allow_unclean:  # B
        return replace(state, leader=live[0], leader_epoch=epoch, isr=(live[0],))
    if state.leader == NO_LEADER:
        return state
    return replace(state, leader=NO_LEADER, leader_epoch=epoch)  # C
