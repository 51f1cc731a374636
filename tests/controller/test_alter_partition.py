"""Validation of the ISR that a leader requests with AlterPartition."""

from hypothesis import given
from hypothesis import strategies as st

from broker.controller.alter_partition import decide
from broker.controller.leadership import Leadership
from broker.errors import ErrorCode
from broker.protocol.messages.alter_partition import BrokerState, RequestPartitionData

CURRENT = Leadership(1, 5, (1, 2), partition_epoch=9, controller_epoch=3)
LIVE = {1: 100, 2: 200, 3: 300}


def asked(
    isr: list[int], leader_epoch: int = 5, partition_epoch: int = 9, recovering: int = 0
) -> RequestPartitionData:
    return RequestPartitionData(
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr=isr,
        leader_recovery_state=recovering,
    )


def test_leader_in_the_current_epochs_gets_the_isr_it_requests() -> None:
    new = decide(1, asked([1, 3]), CURRENT, LIVE)
    assert new == Leadership(1, 5, (1, 3), partition_epoch=9, controller_epoch=3)


def test_epochs_newer_than_ours_give_not_controller() -> None:
    for wanted in (asked([1], leader_epoch=6), asked([1], partition_epoch=10)):
        assert decide(1, wanted, CURRENT, LIVE) is ErrorCode.NOT_CONTROLLER


def test_former_leader_is_fenced() -> None:
    assert decide(1, asked([1], leader_epoch=4), CURRENT, LIVE) is ErrorCode.FENCED_LEADER_EPOCH


def test_old_partition_epoch_is_accepted_only_for_the_isr_that_is_written() -> None:
    assert decide(1, asked([1, 2], partition_epoch=8), CURRENT, LIVE) is CURRENT
    outdated = decide(1, asked([1], partition_epoch=8), CURRENT, LIVE)
    assert outdated is ErrorCode.INVALID_UPDATE_VERSION


def test_dead_and_reregistered_brokers_are_ineligible() -> None:
    assert decide(1, asked([1, 4]), CURRENT, LIVE) is ErrorCode.INELIGIBLE_REPLICA

    def with_epoch(epoch: int) -> RequestPartitionData:
        members = [
            BrokerState(broker_id=1, broker_epoch=100),
            BrokerState(broker_id=3, broker_epoch=epoch),
        ]
        return RequestPartitionData(leader_epoch=5, partition_epoch=9, new_isr_with_epochs=members)

    assert decide(1, with_epoch(299), CURRENT, LIVE) is ErrorCode.INELIGIBLE_REPLICA
    for known in (300, -1):
        assert isinstance(decide(1, with_epoch(known), CURRENT, LIVE), Leadership)


def test_recovering_leader_must_be_alone_in_the_isr_and_recovers_once() -> None:
    recovering = Leadership(1, 5, (1,), 9, 3, is_recovering=True)
    too_many = decide(1, asked([1, 2], recovering=1), recovering, LIVE)
    assert too_many is ErrorCode.INVALID_REQUEST
    recovered = decide(1, asked([1]), recovering, LIVE)
    assert isinstance(recovered, Leadership)
    assert not recovered.is_recovering
    assert decide(1, asked([1], recovering=1), CURRENT, LIVE) is ErrorCode.INVALID_REQUEST


@given(
    isr=st.lists(st.integers(1, 5), min_size=1, unique=True),
    leader_epoch=st.integers(3, 7),
    partition_epoch=st.integers(7, 11),
)
def test_only_the_leader_that_knows_the_latest_state_changes_it(
    isr: list[int], leader_epoch: int, partition_epoch: int
) -> None:
    decided = decide(1, asked(isr, leader_epoch, partition_epoch), CURRENT, LIVE)
    if isinstance(decided, Leadership) and decided != CURRENT:
        assert (leader_epoch, partition_epoch) == (5, 9)
        assert decided.isr == tuple(isr)
        assert set(isr) <= LIVE.keys()
