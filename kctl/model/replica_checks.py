"""Comparison of the replicas of a partition."""

from dataclasses import dataclass

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.records.layout import BytesLike


@dataclass(frozen=True)
class Fetched:
    """The data that one replica returned."""

    high_watermark: int
    data: BytesLike = b""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True)
class Finding:
    """A difference or an error."""

    offset: int
    text: str
    kafka_text: str = ""
    """The text of Kafka's tool, if it reports such differences."""


@dataclass(frozen=True)
class ReplicaComparison:
    """Result of comparing the replicas of one partition."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    from_offset: int
    verified_offset: int
    """Everything before this offset has been compared."""
    high_watermark: int
    findings: tuple[Finding, ...]
    unanswered: tuple[int, ...] = ()
    """Brokers that did not answer; their replicas were not compared."""

    @property
    def lag(self) -> int:
        """Offsets below the high watermark that could not be compared."""
        return max(0, self.high_watermark - self.verified_offset)

    @property
    def status(self) -> str:
        """`differs`, `incomplete` (a broker did not answer), `lagging` or `same`."""
        if self.findings:
            return "differs"
        if self.unanswered:
            return "incomplete"
        return "lagging" if self.lag else "same"
