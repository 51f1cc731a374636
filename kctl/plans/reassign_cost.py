"""What a reassignment costs, what it is good for, and its batches. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broker.model import TopicPartition
from kctl.plans.reassign_draft import Assignment, Layout
from kctl.tables import Column, Row

MOVE_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("now"),
    Column("then"),
    Column("adding"),
    Column("removing"),
    Column("move_bytes", "BYTES", right=True),
]
BROKER_COLUMNS = [
    Column("broker", right=True),
    Column("rack", wide=True),
    Column("replicas_now", right=True),
    Column("replicas_then", right=True),
    Column("leaders_now", right=True),
    Column("leaders_then", right=True),
    Column("bytes_now", right=True),
    Column("bytes_then", right=True),
    Column("bytes_in", right=True),
]
TOTAL_COLUMNS = [
    Column("partitions"),
    Column("replicas_added"),
    Column("replicas_removed"),
    Column("leaders_changed"),
    Column("move_bytes"),
    Column("replica_skew_now"),
    Column("replica_skew_then"),
    Column("leader_skew_now"),
    Column("leader_skew_then"),
    Column("byte_skew_now"),
    Column("byte_skew_then"),
]


@dataclass(frozen=True)
class Move:
    """What happens to one partition."""

    partition: TopicPartition
    now: tuple[int, ...]
    then: tuple[int, ...]
    size_bytes: int
    """Bytes of one replica."""

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that get a replica, which costs its bytes each."""
        return tuple(broker for broker in self.then if broker not in self.now)

    @property
    def removing(self) -> tuple[int, ...]:
        """Brokers that lose theirs."""
        return tuple(broker for broker in self.now if broker not in self.then)

    @property
    def move_bytes(self) -> int:
        """What has to be copied."""
        return len(self.adding) * self.size_bytes

    def row(self) -> dict[str, object]:
        """The move as a row of MOVE_COLUMNS."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "now": list(self.now),
            "then": list(self.then),
            "adding": list(self.adding),
            "removing": list(self.removing),
            "move_bytes": self.move_bytes,
        }


def moves_of(layout: Layout, changes: Assignment) -> list[Move]:
    """The changes as moves, sorted; partitions that keep what they have are left out."""
    return [
        Move(partition, tuple(layout.replicas[partition]), tuple(then), layout.size(partition))
        for partition, then in sorted(changes.items())
        if tuple(layout.replicas[partition]) != tuple(then)
    ]


def batches_of(moves: Sequence[Move], batch_size: int) -> list[list[Move]]:
    """Moves in groups of `batch_size`; what copies nothing comes first and all at once."""
    free = [move for move in moves if not move.adding]
    costly = [move for move in moves if move.adding]
    chunks = [costly[at : at + batch_size] for at in range(0, len(costly), batch_size)]
    return [free, *chunks] if free else chunks


@dataclass(frozen=True)
class _Shares:
    """What each broker has by an assignment."""

    replicas: Counter[int]
    leaders: Counter[int]
    sizes: Counter[int]


def _shares(layout: Layout, assignment: Assignment) -> _Shares:
    replicas, leaders, sizes = Counter[int](), Counter[int](), Counter[int]()
    for partition, found in assignment.items():
        leaders[found[0]] += 1
        for broker in found:
            replicas[broker] += 1
            sizes[broker] += layout.size(partition)
    return _Shares(replicas, leaders, sizes)


def skew(counts: Counter[int], brokers: Iterable[int]) -> float:
    """How much more the fullest broker has than the mean; 1.0 is even, also if all have nothing."""
    values = [counts[broker] for broker in brokers]
    total = sum(values)
    return round(max(values) * len(values) / total, 2) if total else 1.0


def broker_rows(layout: Layout, changes: Assignment) -> list[Row]:
    """What each broker has now and then."""
    now = _shares(layout, layout.replicas)
    then = _shares(layout, {**layout.replicas, **changes})
    coming = Counter[int]()
    for move in moves_of(layout, changes):
        coming.update(dict.fromkeys(move.adding, move.size_bytes))
    return [
        {
            "broker": broker,
            "rack": layout.brokers.get(broker),
            "replicas_now": now.replicas[broker],
            "replicas_then": then.replicas[broker],
            "leaders_now": now.leaders[broker],
            "leaders_then": then.leaders[broker],
            "bytes_now": now.sizes[broker],
            "bytes_then": then.sizes[broker],
            "bytes_in": coming[broker],
        }
        for broker in sorted({*layout.brokers, *now.replicas, *then.replicas})
    ]


def total_row(layout: Layout, changes: Assignment, allowed: Iterable[int]) -> dict[str, object]:
    """The whole in one record; skews are among the brokers that are to be used."""
    brokers = list(allowed)
    moves = moves_of(layout, changes)
    now = _shares(layout, layout.replicas)
    then = _shares(layout, {**layout.replicas, **changes})
    return {
        "partitions": len(moves),
        "replicas_added": sum(len(move.adding) for move in moves),
        "replicas_removed": sum(len(move.removing) for move in moves),
        "leaders_changed": sum(move.now[0] != move.then[0] for move in moves),
        "move_bytes": sum(move.move_bytes for move in moves),
        "replica_skew_now": skew(now.replicas, brokers),
        "replica_skew_then": skew(then.replicas, brokers),
        "leader_skew_now": skew(now.leaders, brokers),
        "leader_skew_then": skew(then.leaders, brokers),
        "byte_skew_now": skew(now.sizes, brokers),
        "byte_skew_then": skew(then.sizes, brokers),
    }


def summary(total: Row) -> str:
    """The record in a line for people."""
    return (
        f"partitions to change: {total['partitions']}; replicas to add: {total['replicas_added']}"
        f" ({human_bytes(int(str(total['move_bytes'])))}), to remove:"
        f" {total['replicas_removed']}; preferred leaders that change:"
        f" {total['leaders_changed']}; skew of replicas {total['replica_skew_now']} →"
        f" {total['replica_skew_then']}, leaders {total['leader_skew_now']} →"
        f" {total['leader_skew_then']}, bytes {total['byte_skew_now']} → {total['byte_skew_then']}"
    )


def human_bytes(count: float) -> str:
    """`1.5 GB`: decimal units, as disks and networks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
