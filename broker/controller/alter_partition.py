"""Validates AlterPartition (KIP-497): whether a leader may have the ISR it requests. Pure.

The checks and their order are Kafka's. The request contains the epochs that the leader knows:

    newer than ours             NOT_CONTROLLER: this broker is behind, probably not the controller
    older leader epoch          FENCED_LEADER_EPOCH: another replica leads
    older partition epoch       the ISR is written already: a repeated request, and no error;
                                otherwise INVALID_UPDATE_VERSION: the leader must read its state
    recovering with other members, or after recovery    INVALID_REQUEST
    member that is not alive, or registered with another epoch than the leader saw (KIP-841,
    KIP-903)                    INELIGIBLE_REPLICA
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
    """The members of the requested ISR with their broker epochs, -1 where none is given."""
    if wanted.new_isr_with_epochs:
        return {state.broker_id: state.broker_epoch for state in wanted.new_isr_with_epochs}
    return dict.fromkeys(wanted.new_isr, _ANY_EPOCH)


def check_broker(request: AlterPartitionRequest, live: Mapping[int, int]) -> ErrorCode:
    """STALE_BROKER_EPOCH unless the sender is registered with the epoch in its request."""
    if live.get(request.broker_id) != request.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def decide(
    leader: int, wanted: RequestPartitionData, current: Leadership, live: Mapping[int, int]
) -> Leadership | ErrorCode:
    """The state to write, or the error; `current` itself if it has the requested ISR already.

    `live` are the broker epochs of the brokers that may be in the ISR.
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
    """The response for one partition."""
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
