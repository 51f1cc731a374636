"""Logs written by Apache Kafka, and the output of its dump tool for them."""

from collections.abc import Iterator
from pathlib import Path

from broker.records.batch import Batch, iterate_batches

GOLDEN = Path(__file__).parent.parent / "golden"
LOGS = GOLDEN / "logs"
EXPECTED = GOLDEN / "expected"

PARTITIONS = sorted(
    str(path.parent.relative_to(EXPECTED)) for path in EXPECTED.rglob("log-data.txt")
)
READABLE = [name for name in PARTITIONS if not name.startswith("corrupt/")]


def segments(partition: str) -> list[Path]:
    """The log files of a partition such as `magic2/txn-0`, by base offset."""
    return sorted((LOGS / partition).glob("*.log"))


def batches(partition: str) -> Iterator[Batch]:
    """All batches of a partition, whatever their format."""
    for segment in segments(partition):
        yield from iterate_batches(segment.read_bytes())
