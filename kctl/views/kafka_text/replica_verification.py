"""The output of kafka-replica-verification."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from kctl.model.replica_checks import ReplicaComparison


def start_line(now: datetime) -> str:
    """The first line."""
    return f"{_stamp(now)}: verification process is started"


def finding_lines(now: datetime, results: Sequence[ReplicaComparison]) -> Iterator[str]:
    """A line per difference that the tool reports."""
    for result in results:
        for finding in result.findings:
            if finding.kafka_text:
                yield f"{_stamp(now)}: partition {result.partition}{finding.kafka_text}"


def lag_line(now: datetime, results: Sequence[ReplicaComparison]) -> str:
    """The periodic report line."""
    worst = max(results, key=lambda result: result.lag)
    return (
        f"{_stamp(now)}: max lag is {worst.lag} for partition {worst.partition} at offset"
        f" {worst.verified_offset} among {len(results)} partitions"
    )


def _stamp(now: datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}"
