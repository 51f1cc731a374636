"""Comparing the replicas of a partition, piece by piece, up to the high watermark. Pure.

Replicas of a topic that is not compacted hold the same batches, byte for byte but for the leader
epoch, so that last offsets and checksums are enough to compare. Replicas of a compacted topic are
cleaned at different times: there, records are compared where two replicas have the same offset.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from broker.errors import CorruptRecord, ErrorCode
from broker.model import TopicPartition
from broker.records.batch import Batch, iterate_batches
from broker.records.layout import BytesLike
from kctl.tables import Column

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("replicas"),
    Column("from_offset", "FROM", right=True),
    Column("verified_offset", "VERIFIED", right=True),
    Column("high_watermark", right=True),
    Column("lag", right=True),
    Column("status"),
    Column("findings"),
]


@dataclass(frozen=True)
class Fetched:
    """What one replica gave; `error` NONE if it did."""

    high_watermark: int
    data: BytesLike = b""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    offset: int
    text: str
    kafka_text: str = ""
    """The same in the words of Kafka's tool, where it has some."""


@dataclass
class ReplicaCheck:
    """The comparison of one partition's replicas as far as it has come.

    Invariant: all that lies before `offset` has been compared, and `findings` says what differed.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    from_offset: int
    is_compacted: bool = False
    offset: int = field(init=False)
    high_watermark: int = -1
    """The highest that any replica has told of; where to stop, once it is known."""
    is_over: bool = False
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.offset = self.from_offset

    @property
    def lag(self) -> int:
        """How many offsets below the high watermark could not be compared."""
        return max(0, self.high_watermark - self.offset)

    @property
    def status(self) -> str:
        """One word for the whole."""
        if self.findings:
            return "differs"
        return "lagging" if self.lag else "same"

    def row(self) -> dict[str, object]:
        """The check as a row of COLUMNS."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "replicas": list(self.replicas),
            "from_offset": self.from_offset,
            "verified_offset": self.offset,
            "high_watermark": self.high_watermark,
            "lag": self.lag,
            "status": self.status,
            "findings": [finding.text for finding in self.findings],
        }

    def compare(self, fetched: Mapping[int, Fetched]) -> bool:
        """Compare what the replicas gave at `offset`; whether that was any progress.

        Ends (`is_over`) at the high watermark of the first call, or where logs part for good.
        """
        before = self.offset
        answered = {b: one for b, one in fetched.items() if not one.error}
        for broker in sorted(self.replicas):
            if broker not in answered:
                error = fetched[broker].error.name if broker in fetched else "no answer"
                self._find(f"broker {broker} does not give offset {self.offset}: {error}")
                self.is_over = True
        marks = [one.high_watermark for one in answered.values()]
        if self.high_watermark < 0:
            self.high_watermark = max(marks, default=-1)
        if not self.is_over:
            limit = min(self.high_watermark, *marks)
            (self._compare_records if self.is_compacted else self._compare_batches)(answered, limit)
        if self.offset >= self.high_watermark:
            self.is_over = True
        return self.offset > before

    def _compare_batches(self, fetched: Mapping[int, Fetched], limit: int) -> None:
        walks = {broker: iterate_batches(one.data) for broker, one in sorted(fetched.items())}
        while not self.is_over:
            batches = {broker: next(walk, None) for broker, walk in walks.items()}
            known = {broker: batch for broker, batch in batches.items() if batch is not None}
            if len(known) < len(walks) or any(b.last_offset >= limit for b in known.values()):
                return
            self._compare_one(known)

    def _compare_one(self, batches: Mapping[int, Batch]) -> None:
        (first, one), *others = batches.items()
        for broker, batch in batches.items():
            if not batch.is_crc_valid():
                self._find(f"offset {batch.last_offset}: broker {broker}'s batch is damaged")
        for broker, other in others:
            if other.last_offset != one.last_offset:
                text = (
                    f"replica {first}'s offset {one.last_offset} doesn't match replica"
                    f" {broker}'s offset {other.last_offset}"
                )
                self._find(text, f": {text}")
                self.is_over = True
                return
            if other.header.crc != one.header.crc:
                text = (
                    f"unmatched checksum at offset {one.last_offset}; replica {first}'s checksum"
                    f" {one.header.crc}; replica {broker}'s checksum {other.header.crc}"
                )
                self._find(text, f" has {text}")
        self.offset = one.next_offset

    def _compare_records(self, fetched: Mapping[int, Fetched], limit: int) -> None:
        ends = [min(limit, _end(one.data, self.offset)) for one in fetched.values()]
        end = min(ends)
        first_with: dict[int, tuple[int, object]] = {}
        for broker, one in sorted(fetched.items()):
            try:
                for offset, record in _records(one.data, self.offset, end):
                    other, expected = first_with.setdefault(offset, (broker, record))
                    if expected != record:
                        self._find(f"offset {offset}: brokers {other} and {broker} differ")
            except CorruptRecord as error:
                self._find(f"broker {broker}: {error}")
        self.offset = max(self.offset, end)

    def _find(self, text: str, kafka_text: str = "") -> None:
        self.findings.append(Finding(self.offset, text, kafka_text))


def _end(data: BytesLike, offset: int) -> int:
    """The offset after the last whole batch."""
    return max((batch.next_offset for batch in iterate_batches(data)), default=offset)


def _records(data: BytesLike, start: int, end: int) -> Iterator[tuple[int, object]]:
    for batch in iterate_batches(data):
        for offset, *record in batch.record_tuples():
            if start <= offset < end:
                yield offset, tuple(record)
