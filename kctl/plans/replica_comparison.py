"""Comparison of the replicas of a partition, fetch by fetch, up to the high watermark.

Replicas of a topic that is not compacted hold identical batches, apart from the leader epoch, so
last offsets and checksums are enough. Replicas of a compacted topic are cleaned at different times,
so records are compared where two replicas have the same offset.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from broker.errors import CorruptRecord
from broker.model import TopicPartition
from broker.records.batch import Batch, iterate_batches
from broker.records.layout import BytesLike
from kctl.model.replica_checks import Fetched, Finding, ReplicaComparison


@dataclass
class ReplicaCheck:
    """The comparison of one partition's replicas in progress.

    Invariant: everything before `offset` has been compared; `findings` has the differences.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    from_offset: int
    is_compacted: bool = False
    offset: int = field(init=False)
    high_watermark: int = -1
    """The highest that any replica reported in the first round: where the comparison ends."""
    is_over: bool = False
    findings: list[Finding] = field(default_factory=list)
    unanswered: set[int] = field(default_factory=set)
    """Brokers that did not answer; the other replicas are compared without them."""

    def __post_init__(self) -> None:
        self.offset = self.from_offset

    @property
    def answering(self) -> list[int]:
        """The brokers whose replicas are compared, in the order of their ids."""
        return sorted(set(self.replicas) - self.unanswered)

    def result(self) -> ReplicaComparison:
        """The comparison so far."""
        return ReplicaComparison(
            self.partition,
            self.replicas,
            self.from_offset,
            self.offset,
            self.high_watermark,
            tuple(self.findings),
            tuple(sorted(self.unanswered)),
        )

    def next_part(self) -> "ReplicaCheck":
        """The comparison of what is written after this one; differences are found again."""
        return ReplicaCheck(self.partition, self.replicas, self.offset, self.is_compacted)

    def compare(self, fetched: Mapping[int, Fetched]) -> bool:
        """Compare the data of the replicas at `offset`; returns whether `offset` advanced.

        Ends (`is_over`) at the high watermark of the first call, or where the logs diverge.
        """
        before = self.offset
        self.unanswered |= set(self.replicas) - set(fetched)
        answered = {b: one for b, one in fetched.items() if not one.error}
        for broker in self.answering:
            if error := fetched[broker].error:
                self._find(f"broker {broker} did not return offset {self.offset}: {error.name}")
                self.is_over = True
        marks = [one.high_watermark for one in answered.values()]
        if self.high_watermark < 0:
            self.high_watermark = max(marks, default=-1)
        if answered and not self.is_over:
            limit = min(self.high_watermark, *marks)
            (self._compare_records if self.is_compacted else self._compare_batches)(answered, limit)
        if not answered or self.offset >= self.high_watermark:
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
                self._find(f"offset {batch.last_offset}: corrupt batch on broker {broker}")
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
    """The offset after the last complete batch."""
    return max((batch.next_offset for batch in iterate_batches(data)), default=offset)


def _records(data: BytesLike, start: int, end: int) -> Iterator[tuple[int, object]]:
    for batch in iterate_batches(data):
        for offset, *record in batch.record_tuples():
            if start <= offset < end:
                yield offset, tuple(record)
