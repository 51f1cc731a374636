"""What is wrong with a cluster, from what was seen of it. Pure functions."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from broker.errors import ErrorCode
from kctl.model.health import ClusterState, Finding, Severity
from kctl.model.topics import Partition, Topic

MIN_FREE: Final = 0.15
"""Share of a log directory's disk that should be free; Strimzi alerts at the same value."""
_MAX_NAMED: Final = 5
"""Partitions that a message names."""


def findings(state: ClusterState) -> list[Finding]:
    """Everything that is wrong, the worst first; an empty list for a healthy cluster."""
    found = [*_brokers(state), *_missing_brokers(state), *_partitions(state), *_log_dirs(state)]
    return sorted(found, key=lambda finding: finding.severity is not Severity.CRITICAL)


def _brokers(state: ClusterState) -> Iterator[Finding]:
    if state.cluster.controller_id is None and state.cluster.is_controller_known:
        yield Finding(
            Severity.CRITICAL,
            "no-controller",
            "cluster",
            "there is no controller: no leader can be elected, no topic created",
            "check the brokers' connection to ZooKeeper, or the KRaft quorum",
        )
    for failure in state.unanswered:
        yield Finding(
            Severity.CRITICAL,
            "broker-unavailable",
            f"broker {failure.broker_id}",
            f"{failure.address or 'it'} {failure.reason}",
            f"restart it, or move its replicas away: kctl reassign run --drain {failure.broker_id}",
        )


def _missing_brokers(state: ClusterState) -> Iterator[Finding]:
    """Brokers that hold replicas and are not registered: they are down."""
    live = {broker.id for broker in state.cluster.brokers}
    assigned = Counter(
        replica for topic in state.topics for p in topic.partitions for replica in p.replicas
    )
    for broker_id in sorted(assigned.keys() - live):
        yield Finding(
            Severity.CRITICAL,
            "broker-down",
            f"broker {broker_id}",
            f"it is not in the cluster and holds {assigned[broker_id]} replicas",
            f"start it, or move its replicas away: kctl reassign run --drain {broker_id}",
        )


def _partitions(state: ClusterState) -> Iterator[Finding]:
    for topic in state.topics:
        min_isr = state.min_isr.get(topic.name, 1)

        def is_offline(partition: Partition) -> bool:
            return partition.leader is None

        def is_under_min_isr(partition: Partition, limit: int = min_isr) -> bool:
            effective = min(limit, len(partition.replicas))
            return partition.leader is not None and len(partition.isr) < effective

        def is_under_replicated(partition: Partition) -> bool:
            return partition.leader is not None and partition.is_under_replicated

        yield from _found(
            topic,
            is_offline,
            Finding(
                Severity.CRITICAL,
                "offline",
                f"topic {topic.name}",
                "have no leader, and can be neither read nor written",
                f"start a broker of its ISR; kctl topics describe {topic.name} names them",
            ),
        )
        yield from _found(
            topic,
            is_under_min_isr,
            Finding(
                Severity.CRITICAL,
                "under-min-isr",
                f"topic {topic.name}",
                f"are below min.insync.replicas={min_isr}, so that acks=all is refused",
                f"start the missing brokers; kctl topics describe {topic.name} names them",
            ),
        )
        yield from _found(
            topic,
            is_under_replicated,
            Finding(
                Severity.WARNING,
                "under-replicated",
                f"topic {topic.name}",
                "are under-replicated",
                f"kctl topics describe {topic.name} names them",
            ),
        )


def _found(
    topic: Topic, is_bad: Callable[[Partition], bool], finding: Finding
) -> Iterator[Finding]:
    """The finding with the partitions that it applies to; nothing without partitions."""
    bad = [str(partition.id) for partition in topic.partitions if is_bad(partition)]
    if not bad:
        return
    named = ",".join(bad[:_MAX_NAMED]) + (",…" if len(bad) > _MAX_NAMED else "")
    # The numbers are last: narrow terminals cut the end.
    message = f"{len(bad)} of {len(topic.partitions)} partitions {finding.message}: {named}"
    yield replace(finding, message=message)


def _log_dirs(state: ClusterState) -> Iterator[Finding]:
    for log_dir in state.log_dirs:
        subject = f"broker {log_dir.broker_id}"
        if log_dir.error is ErrorCode.KAFKA_STORAGE_ERROR:
            yield Finding(
                Severity.CRITICAL,
                "offline-log-dir",
                subject,
                f"log directory {log_dir.path} has failed",
                "replace the disk and restart the broker",
            )
        elif (
            log_dir.total_bytes
            and log_dir.usable_bytes is not None
            and log_dir.usable_bytes < MIN_FREE * log_dir.total_bytes
        ):
            percent = 100 * log_dir.usable_bytes / log_dir.total_bytes
            yield Finding(
                Severity.WARNING,
                "disk-space",
                subject,
                f"{percent:.0f} % of the disk of {log_dir.path} is free",
                "lower the retention of large topics (kctl log-dirs --by topic), or move replicas",
            )
