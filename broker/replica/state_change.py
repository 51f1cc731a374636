"""The log of state changes (logger `state.change`): leaders, followers and ISRs of this broker.

One line per change, in Kafka's words and with all that is needed to reconstruct what a replica knew
at that time: epochs, ISR, log end offset and high watermark.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.model import LeaderAndIsr
from broker.replica.in_sync import RemoteReplica
from broker.replica.reevaluation import Result

if TYPE_CHECKING:
    from broker.replica.partition import Partition

logger = logging.getLogger("state.change")


def became_leader_or_follower(partition: "Partition", previous: LeaderAndIsr) -> None:
    """The controller has decided which replica leads."""
    state = partition.state
    logger.info(
        "became %s partition=%s leader=%s leader_epoch=%s isr=%s replicas=%s partition_epoch=%s "
        "log_end_offset=%s high_watermark=%s previous_leader=%s previous_leader_epoch=%s",
        "leader" if partition.is_leader else "follower",
        partition.name,
        state.leader,
        state.leader_epoch,
        _ids(state.isr),
        _ids(state.replicas),
        state.partition_epoch,
        partition.log.log_end_offset,
        partition.log.high_watermark,
        previous.leader,
        previous.leader_epoch,
    )


def expanding_isr(partition: "Partition", isr: tuple[int, ...], follower: RemoteReplica) -> None:
    """A leader asks the controller to add a follower that is in sync."""
    logger.info(
        "expanding ISR partition=%s from=%s to=%s high_watermark=%s log_end_offset=%s "
        "follower_log_end_offset=%s",
        partition.name,
        _ids(partition.state.isr),
        _ids(isr),
        partition.log.high_watermark,
        partition.log.log_end_offset,
        follower.log_end_offset,
    )


def shrinking_isr(partition: "Partition", isr: tuple[int, ...]) -> None:
    """A leader asks the controller to remove followers that lag."""
    removed = [partition.followers[member] for member in partition.state.isr if member not in isr]
    logger.info(
        "shrinking ISR partition=%s from=%s to=%s high_watermark=%s log_end_offset=%s "
        "out_of_sync_replicas=%s",
        partition.name,
        _ids(partition.state.isr),
        _ids(isr),
        partition.log.high_watermark,
        partition.log.log_end_offset,
        ",".join(
            f"(broker_id={replica.broker_id} log_end_offset={replica.log_end_offset} "
            f"last_caught_up_ms={replica.last_caught_up_ms})"
            for replica in removed
        ),
    )


def isr_updated(partition: "Partition") -> None:
    """The controller has committed an ISR."""
    logger.info(
        "ISR updated partition=%s isr=%s partition_epoch=%s%s",
        partition.name,
        _ids(partition.state.isr),
        partition.state.partition_epoch,
        " under_min_isr=true" if partition.is_under_min_isr else "",
    )


def isr_refused(partition: "Partition") -> None:
    """The controller has refused an ISR."""
    logger.info(
        "ISR change refused partition=%s proposed=%s isr=%s",
        partition.name,
        _ids(partition.proposed_isr or ()),
        _ids(partition.state.isr),
    )


def missed_wakeups(partition: "Partition", result: Result, count: int) -> None:
    """The timer did what an event should have done: a bug in the table of re-evaluations."""
    logger.warning(
        "missed wake-ups healed by the timer partition=%s result=%s count=%s",
        partition.name,
        result.name,
        count,
    )


def _ids(broker_ids: Iterable[int]) -> str:
    """Broker ids as Kafka logs them: `1,2,3`."""
    return ",".join(map(str, broker_ids))
