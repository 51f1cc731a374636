"""Which fetches are answered at once although they have fewer than `min_bytes`.

The expected results were observed on Apache Kafka 3.9.1 with the same log: 20 committed records, an
open transaction at offset 20, ten more records; once with one segment per two records, once in one
segment.
"""

import asyncio
from pathlib import Path

import pytest

from broker.api.handlers import fetch
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.log.support import produced
from tests.support.in_process_cluster import NAME, InProcessBroker, InProcessCluster, run_in_cluster

READ_COMMITTED, READ_UNCOMMITTED = 1, 0
NUM_RECORDS = 31
VERSION = 12


def is_answered_at_once(
    broker: InProcessBroker, offset: int, isolation: int, max_bytes: int = 1 << 20
) -> bool:
    """Fetch as a consumer that waits for more bytes than the log has."""
    asked = FetchPartition(
        partition=NAME.partition, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1 << 20,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_epoch=-1,
        topics=[FetchTopic(topic=NAME.topic, partitions=[asked])],
    )
    answer = fetch.handle(request, broker.context(VERSION))
    if isinstance(answer, FetchResponse):
        assert answer.responses[0].partitions[0].error_code == 0
        return True
    answer.completion.cancel()
    return False


async def fill(brokers: InProcessCluster) -> None:
    """Write the log that is described above."""
    await brokers.lead(1)
    for number in range(20):
        brokers[1].append(f"value {number}")
    leader = brokers[1].partition
    verification = leader.log.start_verification(7, 0, 0)
    leader.append_as_leader(produced("open", transactional=True), verification=verification)
    for number in range(10):
        brokers[1].append(f"value {number}")
    assert leader.log.high_watermark == leader.log.log_end_offset == NUM_RECORDS
    assert leader.log.last_stable_offset == 20


@pytest.mark.parametrize(
    ("isolation", "offset", "is_at_once"),
    [
        (READ_UNCOMMITTED, 0, True),
        (READ_UNCOMMITTED, 27, True),
        (READ_UNCOMMITTED, 30, False),
        (READ_UNCOMMITTED, 31, False),
        (READ_COMMITTED, 17, True),
        (READ_COMMITTED, 20, False),
        (READ_COMMITTED, 21, True),
        (READ_COMMITTED, 30, True),
        (READ_COMMITTED, 31, True),
    ],
)
def test_fetch_on_another_segment_than_the_end_is_answered_at_once(
    tmp_path: Path, isolation: int, offset: int, is_at_once: bool
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await fill(brokers)
        assert len(list(brokers[1].partition.log.segments)) > 10
        assert is_answered_at_once(brokers[1], offset, isolation) == is_at_once

    run_in_cluster(tmp_path, scenario, brokers=1, log_segment_bytes="200")


@pytest.mark.parametrize(
    ("isolation", "offset", "is_at_once"),
    [
        (READ_UNCOMMITTED, 0, False),
        (READ_UNCOMMITTED, 31, False),
        (READ_COMMITTED, 0, False),
        (READ_COMMITTED, 20, False),
        (READ_COMMITTED, 21, True),
        (READ_COMMITTED, 31, True),
    ],
)
def test_fetch_within_the_segment_of_the_end_waits_for_min_bytes(
    tmp_path: Path, isolation: int, offset: int, is_at_once: bool
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await fill(brokers)
        assert is_answered_at_once(brokers[1], offset, isolation) == is_at_once

    run_in_cluster(tmp_path, scenario, brokers=1)


def test_roll_completes_a_fetch_that_waits_on_the_older_segment(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        brokers[1].append("first")
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=10_000,
            min_bytes=1 << 20,
            session_epoch=-1,
            topics=[FetchTopic(topic=NAME.topic, partitions=[asked])],
        )
        answer = fetch.handle(request, brokers[1].context(VERSION))
        assert not isinstance(answer, FetchResponse)
        brokers[1].append("second", "that does not fit into the first segment any more", "x" * 100)
        async with asyncio.timeout(5):
            await answer

    run_in_cluster(tmp_path, scenario, brokers=1, log_segment_bytes="250")


def test_min_bytes_above_max_bytes_counts_as_max_bytes(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        for _ in range(3):
            brokers[1].append("x" * 100)
        assert is_answered_at_once(brokers[1], 0, READ_UNCOMMITTED, max_bytes=300)
        assert not is_answered_at_once(brokers[1], 0, READ_UNCOMMITTED, max_bytes=3000)

    run_in_cluster(tmp_path, scenario, brokers=1)
