"""Rows and columns of `kctl topics`, and the status of partitions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from broker.model import TopicPartition
from kctl.cli.tables import Column
from kctl.model.configs import Change, Config, Entity
from kctl.model.topics import Description, Partition, Topic
from kctl.views.config_changes import change_rows

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
OVERRIDE_COLUMNS = [
    *(column for column in LIST_COLUMNS if column.key != "under_replicated"),
    Column("configs"),
]
ALTERATION_COLUMNS = [Column("topic"), Column("config", "CHANGES"), Column("now"), Column("then")]
DELETION_COLUMNS = [
    Column("topic"),
    Column("partitions", right=True),
    Column("records", right=True),
    Column("bytes", right=True),
]


@dataclass(frozen=True)
class PartitionFilter:
    """Filters of `describe`; a partition matches if any of them applies."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False

    @property
    def is_set(self) -> bool:
        """Whether any filter is set."""
        return self != PartitionFilter()

    def matches(self, found: Description, topic: Topic, partition: Partition) -> bool:
        """Whether the partition matches a filter."""
        problems = problems_of(found, topic, partition)
        return (
            (self.under_replicated and "under-replicated" in problems)
            or (self.unavailable and "unavailable" in problems)
            or (self.under_min_isr and "under-min-isr" in problems)
            or (self.at_min_isr and "at-min-isr" in problems)
        )


EVERY_PARTITION = PartitionFilter()


def problems_of(found: Description, topic: Topic, partition: Partition) -> list[str]:
    """The problems of a partition, worst first, by the criteria of Kafka's tool.

    Includes `at-min-isr` even for a single replica, where it is not a problem.
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
    found: Description, topic: Topic, filters: PartitionFilter = EVERY_PARTITION
) -> Iterator[dict[str, object]]:
    """A row per matching partition of the topic."""
    sizes = found.sizes()
    for partition in topic.partitions:
        if not filters.is_set or filters.matches(found, topic, partition):
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
    """`ok`, or the problems; at-min-isr counts only if replicas are missing from the ISR."""
    problems = problems_of(found, topic, partition)
    if "under-replicated" not in problems:
        problems = [problem for problem in problems if problem != "at-min-isr"]
    if partition.adding or partition.removing:
        problems.append("reassigning")
    return ",".join(problems) or "ok"


def topic_records(
    found: Description, filters: PartitionFilter = EVERY_PARTITION
) -> list[dict[str, object]]:
    """Topics with nested configs and partitions, for programs."""
    records = []
    for topic, row in zip(found.topics, list_rows(found.topics), strict=True):
        partitions = list(partition_rows(found, topic, filters))
        configs = {c.name: c.value for c in found.configs[topic.name] if not c.is_default}
        for partition in partitions:
            del partition["topic"]
        if partitions or not filters.is_set:
            records.append({**row, "configs": configs, "partitions": partitions})
    return records


def heading(found: Description, topic: Topic) -> str:
    """The line above a topic's partitions."""
    count = len(topic.partitions)
    parts = [f"{topic.name}: {count} partition{'s' * (count != 1)}"]
    parts += [f"replication factor {topic.replication_factor}", *_overrides(found, topic)]
    return ", ".join(parts)


def _overrides(found: Description, topic: Topic) -> list[str]:
    return [f"{c.name}={c.value}" for c in found.configs[topic.name] if not c.is_default]


def override_rows(found: Description) -> list[dict[str, object]]:
    """A row of OVERRIDE_COLUMNS per topic with configs of its own."""
    rows = zip(found.topics, list_rows(found.topics), strict=True)
    return [{**row, "configs": own} for topic, row in rows if (own := _overrides(found, topic))]


def alteration_rows(
    topic: Topic,
    count: int | None,
    entity: Entity,
    configs: Sequence[Config],
    changes: Sequence[Change],
) -> list[dict[str, object]]:
    """A row of ALTERATION_COLUMNS for the new number of partitions and for each config."""
    rows: list[dict[str, object]] = []
    if count:
        rows.append({"config": "partitions", "now": len(topic.partitions), "then": count})
    rows += change_rows(entity, configs, changes)
    return [{"topic": topic.name, **row} for row in rows]


def deletion_rows(
    topics: Sequence[Topic], records: Mapping[str, int], sizes: Mapping[str, int]
) -> list[dict[str, object]]:
    """A row of DELETION_COLUMNS per topic, with its records and the bytes of all replicas."""
    return [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "records": records[topic.name],
            "bytes": sizes[topic.name],
        }
        for topic in topics
    ]
