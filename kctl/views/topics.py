"""Rows and columns of `kctl topics`, and the status of partitions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from broker.model import TopicPartition
from kctl.cli.tables import Column, Row, by_word
from kctl.cli.theme import Spans, Style
from kctl.model.configs import Change, Config, Entity
from kctl.model.topics import Description, Partition, Topic
from kctl.views.config_changes import NOW, THEN, change_rows
from kctl.views.styles import bars, if_any, marked, size_column


def _isr_style(row: Row) -> Style | None:
    """Complete, shrunk or offline."""
    if row.get("leader") is None:
        return Style.BAD
    missing = set(_ids(row, "replicas")) - set(_ids(row, "isr")) - set(_ids(row, "adding_replicas"))
    return Style.WARN if missing else Style.GOOD


def _replica_spans(row: Row) -> Spans:
    """The replicas; those that are not in sync stand out, and those being added, too."""
    isr, adding = _ids(row, "isr"), _ids(row, "adding_replicas")

    def style(broker: int) -> Style | None:
        if broker in isr:
            return None
        return Style.NAME if broker in adding else Style.WARN

    return marked(_ids(row, "replicas"), style)


def _ids(row: Row, key: str) -> list[int]:
    found = row.get(key)
    return found if isinstance(found, list) else []


LIST_COLUMNS = [
    Column("topic"),
    Column("partitions", right=True),
    Column("replication_factor", "REPLICAS", right=True),
    Column("under_replicated", right=True, style=if_any("under_replicated", Style.WARN)),
    Column("unavailable", right=True, style=if_any("unavailable", Style.BAD), priority=4),
    Column("internal", wide=True),
    Column("topic_id", wide=True),
]
PARTITION_COLUMNS = [
    Column("partition", right=True, priority=0),
    Column(
        "leader",
        right=True,
        priority=1,
        style=lambda row: Style.BAD if row.get("leader") is None else None,
    ),
    Column("replicas", spans=_replica_spans, priority=2),
    Column("isr", style=_isr_style, priority=2),
    Column("status", style=by_word("status"), priority=1),
    Column("osr", "OSR", wide=True, priority=5),
    Column("preferred_leader", "PREFERRED", priority=6),
    Column("log_start_offset", "START", wide=True, right=True, priority=6),
    Column("log_end_offset", "END", wide=True, right=True, priority=4),
    Column("records", wide=True, right=True, priority=3),
    size_column("size_bytes", wide=True, priority=3),
    Column("skew", " ", wide=True, chart=bars("size_bytes"), priority=9),
    Column("leader_epoch", "EPOCH", wide=True, right=True, priority=7),
    Column("adding_replicas", "ADDING", wide=True, priority=8),
    Column("removing_replicas", "REMOVING", wide=True, priority=8),
]
HEALTH_COLUMNS = [Column("topic", priority=0), *PARTITION_COLUMNS]
OVERRIDE_COLUMNS = [
    *(one for one in LIST_COLUMNS if one.key not in ("under_replicated", "unavailable")),
    Column("configs"),
]
ALTERATION_COLUMNS = [Column("topic"), Column("config", "CHANGES", priority=0), NOW, THEN]
DELETION_COLUMNS = [
    Column("topic"),
    Column("partitions", right=True),
    Column("records", right=True),
    size_column("bytes"),
    Column("groups"),
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
            "unavailable": sum(p.leader is None for p in topic.partitions),
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
        "osr": [one for one in partition.replicas if one not in partition.isr],
        "preferred_leader": partition.has_preferred_leader,
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
    if "under-replicated" not in problems or "under-min-isr" in problems:
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
    topics: Sequence[Topic],
    records: Mapping[str, int],
    sizes: Mapping[str, int],
    groups: Mapping[str, Sequence[str]] | None,
) -> list[dict[str, object]]:
    """A row of DELETION_COLUMNS per topic, with its records and the bytes of all replicas.

    `groups` are those with committed offsets in each topic; None if unknown.
    """
    return [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "records": records[topic.name],
            "bytes": sizes[topic.name],
            "groups": None if groups is None else list(groups[topic.name]),
        }
        for topic in topics
    ]
