"""Safety after every step: looks into the brokers whenever a simulated instant has ended.

`History` remembers everything that was ever committed, which no broker does: per partition, the
longest sequence of records that lay below the high watermark of any leader. The invariants:

    one leader       a leader epoch of a partition belongs to one broker, for ever
    high watermark   never moves back while a broker leads in one epoch
    leaders agree    what a leader has below its high watermark is what was committed before, or
                     continues it; a leader in the newest epoch has everything committed
    acknowledged     an acknowledged batch is committed, at its offset; the records of a producer
                     are committed once and in order
    transactions     the markers of a transaction agree in all partitions, and with its outcome
    commits          acknowledged commits of a group do not move back

It reads memory and files of the brokers, sends no request and takes no random number, so that a
seed does the same with it and without it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker.model import TopicPartition
from broker.records.batch import iterate_batches
from broker.records.control import ControlRecordType, control_type
from broker.replica.partition import Partition
from tests.simulation.clients import (
    GroupConsumer,
    IdempotentProducer,
    SimulatedClient,
    TransactionalProducer,
    Violation,
)
from tests.simulation.cluster import SimulatedBroker, SimulatedCluster
from tests.simulation.loop import Process
from tests.simulation.topic_churn import TOPIC as RECREATED

Epoch = tuple[object, int, int]
"""Topic id, partition, leader epoch."""


@dataclass(frozen=True)
class Row:
    """One record of a log; a marker has no value."""

    offset: int
    value: bytes
    producer_id: int
    is_transactional: bool
    marker: ControlRecordType | None = None


@dataclass
class Leadership:
    """What is known of a broker that leads a partition in some epoch.

    Field `position`: how much of its log file has been read. A leader only appends.
    """

    high_watermark: int = -1
    position: int = 0
    rows: list[Row] = field(default_factory=list)


class History:
    """Checks the invariants of a run; `check` raises a Violation.

    Field `clients`: whose acknowledgements are compared.
    """

    def __init__(self, cluster: SimulatedCluster, topic: str) -> None:
        self.cluster = cluster
        self._topic = topic
        self._owners: dict[Epoch, int] = {}
        self._newest_epochs: dict[tuple[object, int], int] = {}
        self._leaderships: dict[tuple[Process, Epoch], Leadership] = {}
        self._committed: dict[TopicPartition, list[Row]] = defaultdict(list)
        self._next_numbers: dict[tuple[str, TopicPartition], int] = defaultdict(int)
        self._undecided: dict[tuple[TopicPartition, int], list[bytes]] = defaultdict(list)
        """By partition and producer id: values of its open transaction."""
        self._decided: dict[str, ControlRecordType] = {}
        """By producer and number of a transaction: how it ended in some partition."""
        self._num_checked: dict[str, dict[TopicPartition, int]] = {}
        """By producer: how many batches of each partition were found to be committed."""
        self._num_commits = 0
        self._latest_commits: dict[TopicPartition, int] = {}
        self.clients: Sequence[SimulatedClient] = ()

    def check(self) -> None:
        """Look at every leader and every client."""
        for broker in self.cluster.brokers.values():
            replicas = getattr(broker.server, "_replicas", None)  # missing while it starts
            if replicas is None or not broker.is_running:
                continue
            for partition in replicas.partitions.values():
                if partition.state.leader == broker.id:
                    self._check_leader(broker, partition)
        for client in self.clients:
            if isinstance(client, IdempotentProducer):
                self._check_acknowledged(client)
        self._check_commits()

    # --- leaders ---------------------------------------------------------------------------------

    def _check_leader(self, broker: SimulatedBroker, partition: Partition) -> None:
        state, name = partition.state, partition.name
        identity = (partition.topic_id, name.partition)
        epoch = (*identity, state.leader_epoch)
        owner = self._owners.setdefault(epoch, broker.id)
        if owner != broker.id:
            raise Violation(
                f"{name}: brokers {owner} and {broker.id} lead in epoch {state.leader_epoch}"
            )
        assert broker.process is not None
        key = (broker.process, epoch)
        leadership = self._leaderships.get(key)
        is_new = leadership is None
        if leadership is None:
            leadership = self._leaderships[key] = Leadership()
        high_watermark = partition.log.high_watermark
        # A broker that returns while a topic is deleted may create its replica again, as in Kafka.
        if high_watermark < leadership.high_watermark and name.topic != RECREATED:
            raise Violation(
                f"{name}: high watermark of leader {broker.id} moved back from "
                f"{leadership.high_watermark} to {high_watermark}"
            )
        has_advanced = high_watermark > leadership.high_watermark
        leadership.high_watermark = high_watermark
        if name.topic != self._topic or not (is_new or has_advanced):
            return
        self._read(broker, name, leadership)
        newest = max(self._newest_epochs.get(identity, -1), state.leader_epoch)
        self._newest_epochs[identity] = newest
        self.check_committed(name, leadership, is_newest=newest == state.leader_epoch)

    def _read(self, broker: SimulatedBroker, name: TopicPartition, leader: Leadership) -> None:
        """Read what was appended to the leader's log since the last call."""
        path = _log_file(self.cluster.directory / broker.name, name)
        with path.open("rb") as file:
            file.seek(leader.position)
            data = file.read()
        leader.position += len(data)
        for batch in iterate_batches(data):
            header = batch.header
            for offset, _, key, value, _ in batch.record_tuples():
                marker = control_type(key) if header.is_control else None
                row = Row(
                    offset,
                    b"" if header.is_control else value or b"",
                    header.producer_id,
                    header.is_transactional,
                    marker,
                )
                leader.rows.append(row)

    def check_committed(self, name: TopicPartition, leader: Leadership, *, is_newest: bool) -> None:
        """Compare a leader's log with everything committed, and add what it has committed."""
        committed = self._committed[name]
        visible = _count_below(leader.rows, leader.high_watermark)
        count = len(committed) if is_newest else min(visible, len(committed))
        if leader.rows[:count] != committed[:count]:
            index = next(
                (i for i, pair in enumerate(zip(leader.rows, committed)) if pair[0] != pair[1]),  # noqa: B905
                len(leader.rows),
            )
            raise Violation(
                f"lost: {name}: {committed[index]} was committed, "
                f"a leader has {leader.rows[index : index + 1]}"
            )
        for row in leader.rows[len(committed) : visible]:
            committed.append(row)
            self._add_committed(name, row)

    def _add_committed(self, name: TopicPartition, row: Row) -> None:
        if row.marker is not None:
            for value in self._undecided.pop((name, row.producer_id), ()):
                self._decide(value.decode().rpartition("/")[0], row.marker)
        elif row.is_transactional:
            self._undecided[name, row.producer_id].append(row.value)
        else:
            producer, _, number = row.value.decode().rpartition("/")
            expected = self._next_numbers[producer, name]
            if int(number) != expected:
                raise Violation(f"{name}: {row} committed instead of number {expected}")
            self._next_numbers[producer, name] += 1

    def _decide(self, transaction: str, marker: ControlRecordType) -> None:
        found = self._decided.setdefault(transaction, marker)
        if found is not marker:
            raise Violation(f"transaction {transaction} is torn: {found.name} and {marker.name}")
        producer, _, number = transaction.rpartition("/")
        for client in self.clients:
            if client.name == producer and isinstance(client, TransactionalProducer):
                outcome = client.transactions[int(number)].outcome
                is_commit = marker is ControlRecordType.COMMIT
                if outcome is not None and outcome != is_commit:
                    raise Violation(f"transaction {transaction}: {outcome=}, found {marker.name}")

    # --- clients ---------------------------------------------------------------------------------

    def _check_acknowledged(self, producer: IdempotentProducer) -> None:
        """Every batch acknowledged since the last call is committed."""
        if self._num_checked.get(producer.name) is None:
            self._num_checked[producer.name] = defaultdict(int)
        checked = self._num_checked[producer.name]
        for partition, batches in producer.sent_to.items():
            # One batch in flight per partition: they are acknowledged in order.
            while checked[partition] < len(batches):
                batch = batches[checked[partition]]
                if batch.offset is None:
                    break
                checked[partition] += 1
                if batch.offset >= 0:
                    self._find(partition, batch.offset, batch.values)

    def _find(self, name: TopicPartition, offset: int, values: list[bytes]) -> None:
        # Offsets have no gaps: nothing is compacted, and every record is a row.
        rows = self._committed[name][offset : offset + len(values)]
        if [(row.offset, row.value) for row in rows] != list(enumerate(values, offset)):
            raise Violation(
                f"{name}: {values} acknowledged at offset {offset}, committed is {rows}; the high "
                f"watermark was {len(self._committed[name])}"
            )

    def _check_commits(self) -> None:
        for client in self.clients:
            if isinstance(client, GroupConsumer):
                for partition, offset in client.commits[self._num_commits :]:
                    if offset < self._latest_commits.get(partition, 0):
                        raise Violation(
                            f"{partition}: commit moved back from "
                            f"{self._latest_commits[partition]} to {offset}"
                        )
                    self._latest_commits[partition] = offset
                self._num_commits = len(client.commits)
                return  # its members share the list


def _log_file(directory: Path, name: TopicPartition) -> Path:
    """The only segment of a partition: a run is too short for a second one."""
    (path,) = (directory / f"{name.topic}-{name.partition}").glob("*.log")
    return path


def _count_below(rows: list[Row], offset: int) -> int:
    """The number of rows below an offset; rows have no gaps."""
    return min(offset, len(rows))
