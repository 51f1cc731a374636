"""Hanging transactions: a batch that begins one, and a log that contains it."""

import time
from pathlib import Path

from broker.log.layout import CLEAN_SHUTDOWN_FILE
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.records.builder import BatchSettings, build_batch

LOST_ID = 4242
"""The id of the producer with the open transaction; no coordinator knows it."""
HOUR_MS = 3_600_000


def an_hour_ago_ms() -> int:
    """Longer than any transaction may take."""
    return time.time_ns() // 1_000_000 - HOUR_MS


def open_transaction(offset: int = 0, producer_epoch: int = 0) -> bytes:
    """The first batch of a transaction, written an hour ago."""
    settings = BatchSettings(
        producer_id=LOST_ID,
        producer_epoch=producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    return bytes(build_batch([(offset, an_hour_ago_ms(), None, b"lost", ())], settings))


def leave_open(log_dir: Path, partition: str, offset: int = 0, producer_epoch: int = 0) -> None:
    """Replace the log of a stopped broker with one open transaction, from `offset` on.

    The clean-shutdown marker is removed, so that the broker recovers the log when it starts.
    """
    for path in (log_dir / partition).glob("0*"):
        path.unlink()
    batch = open_transaction(offset, producer_epoch)
    (log_dir / partition / f"{offset:020}.log").write_bytes(batch)
    (log_dir / CLEAN_SHUTDOWN_FILE).unlink()


async def write_open_transaction(servers: str, place: TopicPartition) -> None:
    """Write a transaction's first batch as a producer that never tells its coordinator.

    The broker needs `transaction.partition.verification.enable=false`.
    """
    data = PartitionProduceData(index=place.partition, records=open_transaction())
    topics = [TopicProduceData(name=place.topic, partition_data=[data])]
    request = ProduceRequest(
        transactional_id="unknown", acks=-1, timeout_ms=10_000, topic_data=topics
    )
    async with Client(servers) as client:
        answer = await client.send_to_leader(place, request)
    assert answer.responses[0].partition_responses[0].error_code == 0
