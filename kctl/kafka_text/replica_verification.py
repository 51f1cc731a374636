"""What kafka-replica-verification prints."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from kctl.plans.replicas_verify import ReplicaCheck


def start_line(now: datetime) -> str:
    """The line with which it begins."""
    return f"{_stamp(now)}: verification process is started"


def finding_lines(now: datetime, checks: Sequence[ReplicaCheck]) -> Iterator[str]:
    """A line per difference that the tool knows of."""
    for check in checks:
        for finding in check.findings:
            if finding.kafka_text:
                yield f"{_stamp(now)}: partition {check.partition}{finding.kafka_text}"


def lag_line(now: datetime, checks: Sequence[ReplicaCheck]) -> str:
    """The line that it prints again and again."""
    worst = max(checks, key=lambda check: check.lag)
    return (
        f"{_stamp(now)}: max lag is {worst.lag} for partition {worst.partition} at offset"
        f" {worst.offset} among {len(checks)} partitions"
    )


def _stamp(now: datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}"
