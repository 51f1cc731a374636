"""read_committed is exact wherever a read begins and however it is split.

The oracle is a model: a list of transactions with their outcomes, which knows nothing of batches,
indexes or markers that are read back.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log.layout import ABORTED_TXN, ABORTED_TXN_VERSION, OFFSET_ENTRY
from broker.records.batch import Batch, iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)
from kctl.cli.options import Session
from kctl.spark.planning.plan import OffsetRange, Piece
from kctl.spark.planning.selection import Source
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.reading.aborted_transactions import UNKNOWN_END, AbortedTransactions
from kctl.spark.reading.cluster import ClusterSource
from kctl.spark.reading.log_directory import LogDirectorySource
from kctl.spark.reading.pieces import count_records, piece_tables
from tests.support.broker import RunningBroker, running_broker
from tests.support.consumed import offset_of

NO_TRANSACTION = 0
"""The producer id whose records are not transactional."""


@dataclass
class ModelLog:
    """A partition's log as a list of batches, with the outcome of every record."""

    batches: list[bytes] = field(default_factory=list)
    rolls: list[int] = field(default_factory=list)
    """Indexes of batches that begin a segment."""
    indexed: set[int] = field(default_factory=set)
    """Indexes of batches that have an entry in the offset index."""
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(producer id, first offset, offset of the marker, index of the marker's batch)."""
    committed: set[int] = field(default_factory=set)
    end_offset: int = 0
    _open: dict[int, list[int]] = field(default_factory=dict)

    def data(self, producer_id: int, count: int) -> None:
        """Append a batch; its fate is known when its transaction ends."""
        first = self.end_offset
        offsets = range(first, first + count)
        self.end_offset += count
        is_transactional = producer_id != NO_TRANSACTION
        batch_settings = BatchSettings(
            producer_id=producer_id if is_transactional else -1,
            producer_epoch=0 if is_transactional else -1,
            base_sequence=0 if is_transactional else -1,
            is_transactional=is_transactional,
        )
        records = [(offset, 0, None, b"v" * 20, ()) for offset in offsets]
        self.batches.append(build_batch(records, batch_settings))
        if is_transactional:
            self._open.setdefault(producer_id, []).extend(offsets)
        else:
            self.committed.update(offsets)

    def end(self, producer_id: int, *, commit: bool) -> None:
        """Append a marker, as a coordinator does also where nothing was written."""
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        marker = build_end_transaction_batch(
            EndTransactionMarker(kind, 0), producer_id, 0, 0, self.end_offset
        )
        offsets = self._open.pop(producer_id, [])
        if commit:
            self.committed.update(offsets)
        elif offsets:
            self.aborted.append((producer_id, offsets[0], self.end_offset, len(self.batches)))
        self.batches.append(marker)
        self.end_offset += 1

    @property
    def last_stable_offset(self) -> int:
        return min([*(offsets[0] for offsets in self._open.values()), self.end_offset])

    def visible(self, first: int, end: int) -> list[int]:
        return sorted(offset for offset in self.committed if first <= offset < end)

    def write(self, directory: Path) -> None:
        """The segments of the partition, with their offset and transaction indexes."""
        directory.mkdir()
        starts = sorted({0, *self.rolls})
        for start, following in zip(starts, [*starts[1:], len(self.batches)], strict=True):
            self._write_segment(directory, start, following)

    def _write_segment(self, directory: Path, start: int, following: int) -> None:
        base = self.parsed(start).header.base_offset
        position, index = 0, b""
        for number in range(start, following):
            if number in self.indexed and position:
                last = self.parsed(number).header.last_offset
                index += OFFSET_ENTRY.pack(last - base, position)
            position += len(self.batches[number])
        stem = f"{base:020d}"
        (directory / f"{stem}.log").write_bytes(b"".join(self.batches[start:following]))
        (directory / f"{stem}.index").write_bytes(index)
        aborted = [each for each in self.aborted if start <= each[3] < following]
        if aborted:
            entries = [
                ABORTED_TXN.pack(ABORTED_TXN_VERSION, producer, first, last, 0)
                for producer, first, last, _ in aborted
            ]
            (directory / f"{stem}.txnindex").write_bytes(b"".join(entries))

    def parsed(self, number: int) -> Batch:
        return next(iterate_batches(memoryview(self.batches[number])))


STEP = st.tuples(
    st.sampled_from(["data", "committed", "aborted", "commit", "abort"]),
    st.integers(0, 2),
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 4),
)
"""(what, producer id, number of records, whether it is indexed, 0 to roll a segment first)."""


@st.composite
def logs(draw: st.DrawFn) -> ModelLog:
    """Whole transactions, and parts of transactions that interleave with others."""
    log = ModelLog()
    for kind, producer_id, count, is_indexed, roll in draw(st.lists(STEP, min_size=3, max_size=30)):
        if roll == 0 and log.batches:
            log.rolls.append(len(log.batches))
        if is_indexed:
            log.indexed |= {len(log.batches), len(log.batches) + 1}
        if kind in ("data", "committed", "aborted"):
            log.data(producer_id, count)
        if kind != "data":
            log.end(producer_id or 1, commit=kind.startswith("commit"))
    # Transactions left open hold back the last stable offset, and so hide everything behind it.
    for producer_id in draw(st.sampled_from([(1, 2), (2, 1), (1,), ()])):
        log.end(producer_id, commit=draw(st.booleans()))
    return log


def offsets_of(piece: Piece, servers: str = "") -> list[int]:
    tables = piece_tables(piece, TaskSettings("", bootstrap_servers=servers), ("offset",))
    return [offset for table, _ in tables for offset in table.column("offset").to_pylist()]


@given(log=logs(), start=st.floats(0, 1), task_bytes=st.integers(1, 2000))
@settings(max_examples=300, deadline=None)
def test_pieces_of_a_log_directory_hold_what_a_read_committed_consumer_reads(
    log: ModelLog, start: float, task_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        log.write(Path(scratch) / "t-0")
        source = LogDirectorySource([Path(scratch)])
        (whole,) = source.whole_ranges(source.partitions(), is_committed=True)
        assert whole.end_offset == log.last_stable_offset
        first = int(start * whole.end_offset)
        wanted = OffsetRange("t", 0, first, whole.end_offset)
        pieces = list(source.pieces(wanted, task_bytes)) if not wanted.is_empty else []
        found = [offset for piece in pieces for offset in offsets_of(piece)]
        visible = log.visible(first, whole.end_offset)
        assert found == visible
        assert sum(count_records(piece, TaskSettings("")) for piece in pieces) == len(visible)


def fetched(log: ModelLog, offset: int, max_batches: int) -> Iterator[tuple[list[Batch], int]]:
    """Fetch responses from `offset` on, as (batches, fetch offset)."""
    batches = [log.parsed(number) for number in range(len(log.batches))]
    while remaining := [each for each in batches if each.header.last_offset >= offset]:
        response = remaining[:max_batches]
        yield response, offset
        offset = response[-1].next_offset


def aborted_in(
    log: ModelLog, batches: list[Batch], fetch_offset: int
) -> list[tuple[int, int, int]]:
    """The aborted transactions a leader names in a response: those that overlap its offsets."""
    end = batches[-1].next_offset
    overlapping = [each for each in log.aborted if each[2] >= fetch_offset and each[1] < end]
    return [(producer, first, UNKNOWN_END) for producer, first, *_ in overlapping]


@given(log=logs(), start=st.floats(0, 1), max_batches=st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_fetch_responses_hold_what_a_read_committed_consumer_reads(
    log: ModelLog, start: float, max_batches: int
) -> None:
    end = log.last_stable_offset
    first = int(start * end)
    found = []
    for batches, fetch_offset in fetched(log, first, max_batches):
        transactions = AbortedTransactions(aborted_in(log, batches, fetch_offset))
        for batch in batches:
            if not transactions.hides(batch):
                found += [offset for offset in batch.columns().offsets if first <= offset < end]
    assert found == log.visible(first, end)


# --- a real consumer ---------------------------------------------------------------------------

FIRST_MARKER = 10


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A log that begins at an abort marker, and has committed and aborted transactions behind it.

    Producer A aborts 0 to 9, then commits and aborts alternately; B commits in between. The aborted
    records are deleted up to their marker, as retention does.
    """
    with running_broker(
        tmp_path_factory.mktemp("broker"),
        transaction_state_log_num_partitions=1,
        offsets_topic_num_partitions=1,
    ) as running:
        servers = {"bootstrap.servers": running.bootstrap_servers}
        admin = AdminClient({**servers})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(10)
        producers = {name: Producer({**servers, "transactional.id": name}) for name in "AB"}
        for producer in producers.values():
            producer.init_transactions(20)
        for name, outcome in ("A-", "A+", "B+", "A+", "A-", "B-", "A+", "B+"):
            producer = producers[name]
            producer.begin_transaction()
            for number in range(10):
                producer.produce("t", f"{name}{outcome} {number}", partition=0)
            producer.flush(20)
            (producer.commit_transaction if outcome == "+" else producer.abort_transaction)(20)
        (deleted,) = admin.delete_records([TopicPartition("t", 0, FIRST_MARKER)]).values()
        deleted.result(10)
        yield running


def consumed(broker: RunningBroker, first_offset: int) -> list[int]:
    """The offsets that librdkafka's read_committed consumer delivers from an offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "oracle",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("t", 0, first_offset)])
    offsets: list[int] = []
    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            consumer.close()
            return offsets
        offsets.append(offset_of(message))


@pytest.mark.timeout(120)
def test_every_start_and_split_agrees_with_a_real_consumer(broker: RunningBroker) -> None:
    wanted = consumed(broker, FIRST_MARKER)
    assert len(wanted) == 50
    session = Session(broker.bootstrap_servers)
    wire = ClusterSource(session)
    sources: list[tuple[Source, str]] = [
        (wire, broker.bootstrap_servers),
        (LogDirectorySource([broker.log_dir]), ""),
    ]
    for source, servers in sources:
        whole = next(
            each
            for each in source.whole_ranges(source.partitions(), is_committed=True)
            if each.topic == "t"
        )
        # The broker checkpoints the new log start offset later: files may begin at 0 until then.
        whole = OffsetRange("t", 0, FIRST_MARKER, whole.end_offset)
        for first in range(whole.first_offset, whole.end_offset):
            offsets = OffsetRange("t", 0, first, whole.end_offset)
            pieces = list(source.pieces(offsets, 1 << 30))
            found = [offset for piece in pieces for offset in offsets_of(piece, servers)]
            assert found == [offset for offset in wanted if offset >= first]
        pieces = list(source.pieces(whole, 200))
        assert len(pieces) > 1 or not servers
        found = [offset for piece in pieces for offset in offsets_of(piece, servers)]
        assert found == wanted
    session.close()
