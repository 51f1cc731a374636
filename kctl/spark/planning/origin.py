"""Which log an export was read from, so that an increment of another log is refused. No I/O.

Offsets alone do not identify a log: a topic that was deleted and created again begins at 0 and
grows past the exported offsets. The manifest therefore holds the cluster id, the topic id and the
leader epoch in which the exported range ended.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.model import TopicPartition

HINT = (
    "export to another directory, replace the exports with --overwrite, or export the log as it is "
    "now with --on-gap skip"
)


@dataclass(frozen=True)
class Origin:
    """The logs of some partitions as a source identifies them; unknown values are left out."""

    cluster_id: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    leader_epochs: Mapping[str, int] = field(default_factory=dict)
    """The latest leader epoch, by `topic-partition`."""

    def of(self, partition: TopicPartition) -> dict[str, Any]:
        """The manifest fields of one partition."""
        return {
            "topic_id": self.topic_ids.get(partition.topic),
            "leader_epoch": self.leader_epochs.get(str(partition)),
        }


@dataclass(frozen=True)
class ExportedEnd:
    """Where the exports of one partition end, and in which log."""

    end_offset: int
    cluster_id: str | None = None
    topic_id: str | None = None
    leader_epoch: int | None = None

    def is_same_log(self, other: "ExportedEnd") -> bool:
        """Whether both may be the same log; unknown ids are ignored."""
        pairs = [(self.cluster_id, other.cluster_id), (self.topic_id, other.topic_id)]
        return all(ours is None or theirs is None or ours == theirs for ours, theirs in pairs)


def difference(partition: TopicPartition, exported: ExportedEnd, origin: Origin) -> str:
    """Why the source's log is not the one that was exported; empty if it may be."""
    cluster_id, topic_id = origin.cluster_id, origin.topic_ids.get(partition.topic)
    if exported.cluster_id and cluster_id and exported.cluster_id != cluster_id:
        return f"exported from cluster {exported.cluster_id}, the source is cluster {cluster_id}"
    if exported.topic_id and topic_id and exported.topic_id != topic_id:
        return (
            f"topic {partition.topic} was recreated: exported with topic id {exported.topic_id}, "
            f"the topic id is now {topic_id}"
        )
    return ""


def epochs_to_check(
    exported: Mapping[TopicPartition, ExportedEnd], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The leader epochs whose end offsets show whether exported offsets were truncated."""
    known = {each: exported[each].leader_epoch for each in partitions if each in exported}
    return {partition: epoch for partition, epoch in known.items() if epoch is not None}


def origin_problems(
    exported: Mapping[TopicPartition, ExportedEnd],
    origin: Origin,
    epoch_ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, str]:
    """Why logs are not the exported ones, or were truncated since; empty if there is no problem."""
    found = {}
    for partition, end in exported.items():
        problem = difference(partition, end, origin)
        if problem := problem or _epoch_problem(partition, end, origin, epoch_ends):
            found[partition] = problem
    return found


def _epoch_problem(
    partition: TopicPartition,
    end: ExportedEnd,
    origin: Origin,
    epoch_ends: Mapping[TopicPartition, int],
) -> str:
    epoch_end = epoch_ends.get(partition)
    if epoch_end is None or epoch_end >= end.end_offset:
        return ""
    # A replica that got no record in the newest epoch does not know it. With equal topic ids, an
    # unknown epoch means nothing else.
    is_same_topic = end.topic_id is not None and partition.topic in origin.topic_ids
    return _truncated(end, epoch_end) if epoch_end >= 0 or not is_same_topic else ""


def _truncated(end: ExportedEnd, epoch_end: int) -> str:
    exported = f"exported up to offset {end.end_offset} in leader epoch {end.leader_epoch}"
    if epoch_end < 0:
        return f"{exported}, which the log does not have: the topic was recreated"
    return f"{exported}, which ended at offset {epoch_end}: the log was truncated"
