"""Partitions that need a leader election, and the expected leaders."""

from collections.abc import Iterable, Sequence

from broker.model import TopicPartition
from kctl.model.elections import Candidate, ElectionType
from kctl.model.topics import Partition, Topic


def candidates_of(
    topics: Iterable[Topic],
    election_type: ElectionType,
    live_brokers: frozenset[int],
    broker: int | None = None,
) -> list[Candidate]:
    """The partitions that need an election, in order; `broker` limits them to its partitions.

    A preferred election is needed if the leader is not the first replica; an unclean one if there
    is no leader.
    """
    found = []
    for topic in topics:
        for partition in topic.partitions:
            if not is_needed(partition, election_type):
                continue
            if broker is None or broker in _concerned(partition, election_type):
                key = TopicPartition(topic.name, partition.id)
                found.append(_candidate(key, partition, election_type, live_brokers))
    return found


def is_needed(partition: Partition, election_type: ElectionType) -> bool:
    """Whether the election would change anything."""
    if election_type is ElectionType.PREFERRED:
        return partition.leader != partition.replicas[0]
    return partition.leader is None


def _concerned(partition: Partition, election_type: ElectionType) -> Sequence[int]:
    is_preferred = election_type is ElectionType.PREFERRED
    return partition.replicas[:1] if is_preferred else partition.replicas


def _candidate(
    key: TopicPartition,
    partition: Partition,
    election_type: ElectionType,
    live_brokers: frozenset[int],
) -> Candidate:
    replicas, isr = partition.replicas, partition.isr
    if election_type is ElectionType.UNCLEAN:
        alive = [broker for broker in replicas if broker in live_brokers]
        note = "records may be lost" if alive else "no replica is alive"
        elects = alive[0] if alive else None
        return Candidate(key, partition.leader, elects, note, replicas, isr)
    first = replicas[0]
    note = ""
    if first not in live_brokers:
        note = f"broker {first} is down"
    elif first not in isr:
        note = f"broker {first} is not in sync"
    return Candidate(key, partition.leader, None if note else first, note, replicas, isr)
