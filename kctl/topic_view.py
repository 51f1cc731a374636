"""Topics as `kctl topics` shows them: rows of topics and partitions, and what is wrong."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from broker.model import TopicPartition
from kctl.admin.describe_topics import Description
from kctl.admin.topics import Partition, Topic
from kctl.tables import Column

LIST_COLUMNS = [
    Column("topic"),
    Column("partitions", right=True),
    Column("replication_factor", "REPLICAS", right=True),
    Column("under_replicated", right=True),
    Column("internal", wide=True),
    Column("topic_id", wide=True),
]
PARTITION_COLUMNS = [
    Column("partition", right=True),
    Column("leader", right=True),
    Column("replicas"),
    Column("isr"),
    Column("status"),
    Column("log_start_offset", "START", wide=True, right=True),
    Column("log_end_offset", "END", wide=True, right=True),
    Column("records", wide=True, right=True),
    Column("size_bytes", "BYTES", wide=True, right=True),
    Column("leader_epoch", "EPOCH", wide=True, right=True),
    Column("adding_replicas", "ADDING", wide=True),
    Column("removing_replicas", "REMOVING", wide=True),
]
HEALTH_COLUMNS = [Column("topic"), *PARTITION_COLUMNS]


@dataclass(frozen=True)
class Health:
    """Which partitions `describe` is asked to show; any of these is enough."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False

    @property
    def is_asked_for(self) -> bool:
        """Whether some partitions are to be left out."""
        return self != Health()

    def wants(self, found: Description, topic: Topic, partition: Partition) -> bool:
        """Whether the partition has one of the troubles asked for."""
        troubles = troubles_of(found, topic, partition)
        return (
            (self.under_replicated and "under-replicated" in troubles)
            or (self.unavailable and "unavailable" in troubles)
            or (self.under_min_isr and "under-min-isr" in troubles)
            or (self.at_min_isr and "at-min-isr" in troubles)
        )


EVERY_PARTITION = Health()


def troubles_of(found: Description, topic: Topic, partition: Partition) -> list[str]:
    """What is wrong with a partition, the worst first; the tests are those of Kafka's tool.

    `at-min-isr` is in the list whenever it is so, though for a single replica it is no trouble.
    """
    min_isr = found.min_isr(topic)
    tests: list[tuple[str, Callable[[], bool]]] = [
        ("unavailable", lambda: partition.leader not in found.live_brokers),
        ("under-min-isr", lambda: partition.leader is None or len(partition.isr) < min_isr),
        ("under-replicated", lambda: partition.is_under_replicated),
        ("at-min-isr", lambda: len(partition.isr) == min_isr),
    ]
    return [name for name, is_so in tests if is_so()]


def list_rows(topics: Sequence[Topic]) -> list[dict[str, object]]:
    """A row per topic."""
    return [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": topic.replication_factor,
            "under_replicated": sum(p.is_under_replicated for p in topic.partitions),
            "internal": topic.is_internal,
            "topic_id": topic.topic_id,
        }
        for topic in topics
    ]


def partition_rows(
    found: Description, topic: Topic, health: Health = EVERY_PARTITION
) -> Iterator[dict[str, object]]:
    """A row per partition of the topic that is wanted."""
    sizes = found.sizes()
    for partition in topic.partitions:
        if not health.is_asked_for or health.wants(found, topic, partition):
            row = _partition_row(found, topic, partition)
            key = TopicPartition(topic.name, partition.id)
            leader = -1 if partition.leader is None else partition.leader
            yield row | {"size_bytes": sizes.get((key, leader))}


def _partition_row(found: Description, topic: Topic, partition: Partition) -> dict[str, object]:
    key = TopicPartition(topic.name, partition.id)
    start, end = found.starts.get(key), found.ends.get(key)
    return {
        "topic": topic.name,
        "partition": partition.id,
        "leader": partition.leader,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "status": _status(found, topic, partition),
        "log_start_offset": start,
        "log_end_offset": end,
        "records": None if start is None or end is None else end - start,
        "leader_epoch": partition.leader_epoch,
        "adding_replicas": list(partition.adding or ()),
        "removing_replicas": list(partition.removing or ()),
    }


def _status(found: Description, topic: Topic, partition: Partition) -> str:
    """`ok`, or the troubles; being at the minimum counts only where replicas are missing."""
    troubles = troubles_of(found, topic, partition)
    if "under-replicated" not in troubles:
        troubles = [trouble for trouble in troubles if trouble != "at-min-isr"]
    return ",".join(troubles) or "ok"


def topic_records(found: Description, health: Health = EVERY_PARTITION) -> list[dict[str, object]]:
    """A topic with its settings and partitions inside of it, for programs."""
    records = []
    for topic, row in zip(found.topics, list_rows(found.topics), strict=True):
        partitions = list(partition_rows(found, topic, health))
        configs = {c.name: c.value for c in found.configs[topic.name] if not c.is_default}
        for partition in partitions:
            del partition["topic"]
        if partitions or not health.is_asked_for:
            records.append({**row, "configs": configs, "partitions": partitions})
    return records


def heading(found: Description, topic: Topic) -> str:
    """One line above a topic's partitions."""
    overrides = [f"{c.name}={c.value}" for c in found.configs[topic.name] if not c.is_default]
    count = len(topic.partitions)
    parts = [f"{topic.name}: {count} partition{'s' * (count != 1)}"]
    return ", ".join([*parts, f"replication factor {topic.replication_factor}", *overrides])
