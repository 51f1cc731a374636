"""Whether a leader may have the ISR it asks for (AlterPartition, KIP-497): pure.

The order of the checks is Kafka's. The request carries the epochs that the leader knows:

    newer than ours: we are the one who is behind, perhaps no longer the controller;
    an older leader epoch: somebody else leads by now;
    an older partition epoch: fine if the ISR is the one asked for, else the leader must read again;
    a member that is not alive, or not in the life that the leader saw (KIP-841, KIP-903): refused.
"""

from collections.abc import Mapping
from dataclasses import replace

from broker.controller.leadership import Leadership
from broker.errors import ErrorCode
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    RequestPartitionData,
    ResponsePartitionData,
)

_ANY_EPOCH = -1


def isr_of(wanted: RequestPartitionData) -> dict[int, int]:
    """The members of the ISR that is asked for, and their broker epochs where they are told."""
    if wanted.new_isr_with_epochs:
        return {state.broker_id: state.broker_epoch for state in wanted.new_isr_with_epochs}
    return dict.fromkeys(wanted.new_isr, _ANY_EPOCH)


def check_broker(request: AlterPartitionRequest, live: Mapping[int, int]) -> ErrorCode:
    """Whether who asks is alive, in the life (broker epoch) that it thinks it is in."""
    if live.get(request.broker_id) != request.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def decide(
    leader: int, wanted: RequestPartitionData, current: Leadership, live: Mapping[int, int]
) -> Leadership | ErrorCode:
    """The state to write; `current` itself if that is what is wanted; or why it cannot be.

    Field `live`: broker epochs of the brokers that may be in sync.
    """
    if (
        wanted.partition_epoch > current.partition_epoch
        or wanted.leader_epoch > current.leader_epoch
    ):
        return ErrorCode.NOT_CONTROLLER
    if wanted.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    isr = isr_of(wanted)
    is_recovering = bool(wanted.leader_recovery_state)
    new = replace(current, leader=leader, isr=tuple(isr), is_recovering=is_recovering)
    if new == current:
        return current
    if wanted.partition_epoch < current.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if is_recovering and (len(isr) > 1 or not current.is_recovering):
        return ErrorCode.INVALID_REQUEST
    if any(_is_ineligible(broker_id, epoch, live) for broker_id, epoch in isr.items()):
        return ErrorCode.INELIGIBLE_REPLICA
    return new


def _is_ineligible(broker_id: int, epoch: int, live: Mapping[int, int]) -> bool:
    return broker_id not in live or epoch not in (_ANY_EPOCH, live[broker_id])


def answer(index: int, outcome: Leadership | ErrorCode) -> ResponsePartitionData:
    """What the leader is told of one partition."""
    if not isinstance(outcome, Leadership):
        return ResponsePartitionData(partition_index=index, error_code=outcome)
    return ResponsePartitionData(
        partition_index=index,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=list(outcome.isr),
        leader_recovery_state=int(outcome.is_recovering),
        partition_epoch=outcome.partition_epoch,
    )
