"""ListOffsets on a leader that was elected lately: which offsets it may give to consumers.

The high watermark of a new leader may lag behind what its predecessor has shown to consumers.
Until it has reached the start of the leader's epoch, the latest offset is not available.
"""

from pathlib import Path

from broker.api.handlers import list_offsets
from broker.errors import ErrorCode
from broker.log.offsets import LATEST_TIMESTAMP
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.log.support import NOW_MS, produced
from tests.support.in_process_cluster import NAME, InProcessBroker, InProcessCluster, run_in_cluster

READ_COMMITTED, READ_UNCOMMITTED = 1, 0


def ask(
    broker: InProcessBroker, isolation: int, timestamp: int = LATEST_TIMESTAMP
) -> ListOffsetsPartitionResponse:
    """Look up an offset as a consumer does."""
    asked = ListOffsetsPartition(partition_index=NAME.partition, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=NAME.topic, partitions=[asked])],
    )
    version = ListOffsetsRequest.versions[1]
    return list_offsets.handle(request, broker.context(version)).topics[0].partitions[0]


def test_regression_open_transaction_does_not_hide_the_latest_offset_after_an_election(
    tmp_path: Path,
) -> None:
    """The last stable offset stays below the epoch's start until the transaction ends."""

    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        leader = brokers[1].partition
        verification = leader.log.start_verification(7, 0, 0)
        leader.append_as_leader(produced("ongoing", transactional=True), verification=verification)
        await brokers.followed(2, 1)
        await brokers.lead(2)
        await brokers.replicated(2, 1)
        found = ask(brokers[2], READ_COMMITTED)
        assert (found.error_code, found.offset, found.leader_epoch) == (ErrorCode.NONE, 0, 1)
        found = ask(brokers[2], READ_COMMITTED, NOW_MS)
        assert (found.error_code, found.offset) == (ErrorCode.NONE, -1)
        assert ask(brokers[2], READ_UNCOMMITTED).offset == 1

    run_in_cluster(tmp_path, scenario, brokers=2)


def test_latest_offset_is_not_available_while_the_high_watermark_lags(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("value"))
        brokers.pause(2)
        brokers[1].append("value")
        await brokers.lead(1)
        for isolation in (READ_COMMITTED, READ_UNCOMMITTED):
            assert ask(brokers[1], isolation).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        brokers.resume(2)
        await brokers.replicated(1, 2)
        assert ask(brokers[1], READ_COMMITTED).offset == 2

    run_in_cluster(tmp_path, scenario, brokers=2)
