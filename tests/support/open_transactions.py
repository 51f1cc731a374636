"""Hanging transactions: a batch that begins one, and a log that contains it."""

import time
from pathlib import Path

from broker.log.layout import CLEAN_SHUTDOWN_FILE
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
