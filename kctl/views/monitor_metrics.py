"""The metrics of `kctl monitor`, under the names of the exporters whose dashboards exist.

kafka_exporter (danielqsj), kafka-lag-exporter (seglo) and kminion (redpanda-data), plus our own
`kctl_*`. Every series has the label `cluster`, or `cluster_name` as in kafka-lag-exporter.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from broker.admin.exposition import Family, Kind
from kctl.model.lag import PartitionLag
from kctl.model.monitoring import ClusterSnapshot


class Names(StrEnum):
    """Which exporter's metric names are served."""

    KAFKA_EXPORTER = "kafka-exporter"
    LAG_EXPORTER = "lag-exporter"
    KMINION = "kminion"


class Sheet:
    """Families by name; all clusters add to the same ones."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def add(self, name: str, labels: Mapping[str, object], value: float) -> None:
        """Add one series; the labels of a name are the same in every call."""
        family = self._families.get(name)
        if family is None:
            is_counter = name.endswith(("_total", "_bucket", "_count", "_sum")) and (
                "end_to_end" in name
            )
            kind = Kind.COUNTER if is_counter else Kind.GAUGE
            text = _HELP.get(name, name)
            family = self._families[name] = Family(name, text, kind, (*labels,))
        family.samples.append((tuple(map(str, labels.values())), value))

    def families(self) -> list[Family]:
        """All families."""
        return list(self._families.values())


_HELP = {
    "kafka_consumergroup_lag": "Records between the committed offset and the log end.",
    "kafka_consumergroup_group_lag_seconds": "Age of the record at the committed offset.",
    "kctl_monitor_up": "1: the last cycle of the cluster succeeded.",
    "kctl_group_time_to_zero_seconds": "Seconds until the lag is read at the present rates.",
    "kctl_group_verdict": "1: the verdict of the partition.",
    "kctl_broker_certificate_expiry_seconds": "When it expires, in seconds since 1970.",
}


def monitor_families(snapshots: Iterable[ClusterSnapshot], names: Sequence[Names]) -> list[Family]:
    """The series of all clusters."""
    sheet = Sheet()
    for snapshot in snapshots:
        if Names.KAFKA_EXPORTER in names:
            _kafka_exporter(sheet, snapshot)
        if Names.LAG_EXPORTER in names:
            _lag_exporter(sheet, snapshot)
        if Names.KMINION in names:
            _kminion(sheet, snapshot)
        _own(sheet, snapshot)
        _probes(sheet, snapshot)
    return sheet.families()


def _kafka_exporter(sheet: Sheet, snapshot: ClusterSnapshot) -> None:
    cluster = {"cluster": snapshot.name}
    sheet.add("kafka_brokers", cluster, len(snapshot.cluster.brokers))
    for broker in snapshot.cluster.brokers:
        sheet.add("kafka_broker_info", {**cluster, "id": broker.id, "address": str(broker)}, 1)
    for topic in snapshot.topics:
        sheet.add("kafka_topic_partitions", {**cluster, "topic": topic.name}, len(topic.partitions))
        for p in topic.partitions:
            labels = {**cluster, "topic": topic.name, "partition": p.id}
            is_preferred = bool(p.replicas) and p.leader == p.replicas[0]
            for name, value in (
                ("leader", -1 if p.leader is None else p.leader),
                ("replicas", len(p.replicas)),
                ("in_sync_replica", len(p.isr)),
                ("leader_is_preferred", int(is_preferred)),
                ("under_replicated_partition", int(p.is_under_replicated)),
            ):
                sheet.add(f"kafka_topic_partition_{name}", labels, value)
    for name, offsets in (("current", snapshot.ends), ("oldest", snapshot.starts)):
        for place, offset in offsets.items():
            labels = {**cluster, "topic": place.topic, "partition": place.partition}
            sheet.add(f"kafka_topic_partition_{name}_offset", labels, offset)
    for one in snapshot.groups:
        group = {**cluster, "consumergroup": one.group.group_id}
        sheet.add("kafka_consumergroup_members", group, len(one.group.members))
        sums: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for lag in _committed(one.partitions):
            place = lag.place
            labels = {**group, "topic": place.topic, "partition": place.partition}
            offset, records = lag.current_offset or 0, max(0, lag.lag or 0)
            sheet.add("kafka_consumergroup_current_offset", labels, offset)
            sheet.add("kafka_consumergroup_lag", labels, records)
            offsets_sum, lags_sum = sums[place.topic]
            sums[place.topic] = (offsets_sum + offset, lags_sum + records)
        for name, (offsets_sum, lags_sum) in sums.items():
            sheet.add(
                "kafka_consumergroup_current_offset_sum", {**group, "topic": name}, offsets_sum
            )
            sheet.add("kafka_consumergroup_lag_sum", {**group, "topic": name}, lags_sum)


def _lag_exporter(sheet: Sheet, snapshot: ClusterSnapshot) -> None:
    cluster = {"cluster_name": snapshot.name}
    for name, offsets in (("latest", snapshot.ends), ("earliest", snapshot.starts)):
        for place, offset in offsets.items():
            labels = {**cluster, "topic": place.topic, "partition": place.partition}
            sheet.add(f"kafka_partition_{name}_offset", labels, offset)
    for one in snapshot.groups:
        group = {**cluster, "group": one.group.group_id}
        by_topic: dict[str, int] = defaultdict(int)
        seconds = []
        for lag in _committed(one.partitions):
            member = lag.member
            labels = {
                **group,
                "topic": lag.place.topic,
                "partition": lag.place.partition,
                "member_host": member.host if member else "",
                "consumer_id": member.member_id if member else "",
                "client_id": member.client_id if member else "",
            }
            records = max(0, lag.lag or 0)
            by_topic[lag.place.topic] += records
            sheet.add("kafka_consumergroup_group_offset", labels, lag.current_offset or 0)
            sheet.add("kafka_consumergroup_group_lag", labels, records)
            known = snapshot.lag_seconds.get((lag.group_id, lag.place))
            if known is not None:
                seconds.append(known)
                sheet.add("kafka_consumergroup_group_lag_seconds", labels, known)
        if by_topic:
            sheet.add("kafka_consumergroup_group_max_lag", group, max(0, one.max_lag))
            sheet.add("kafka_consumergroup_group_sum_lag", group, sum(by_topic.values()))
        if seconds:
            sheet.add("kafka_consumergroup_group_max_lag_seconds", group, max(seconds))
        for topic, records in by_topic.items():
            sheet.add("kafka_consumergroup_group_topic_sum_lag", {**group, "topic": topic}, records)


def _kminion(sheet: Sheet, snapshot: ClusterSnapshot) -> None:
    cluster = {"cluster": snapshot.name}
    known = snapshot.cluster
    sheet.add(
        "kminion_kafka_cluster_info",
        {
            **cluster,
            "cluster_id": known.cluster_id or "",
            "controller_id": -1 if known.controller_id is None else known.controller_id,
            "broker_count": len(known.brokers),
        },
        1,
    )
    for topic in snapshot.topics:
        info = {
            **cluster,
            "topic_name": topic.name,
            "partition_count": len(topic.partitions),
            "replication_factor": max((len(p.replicas) for p in topic.partitions), default=0),
        }
        sheet.add("kminion_kafka_topic_info", info, 1)
    sizes: dict[int, int] = defaultdict(int)
    topics: dict[str, int] = defaultdict(int)
    for log_dir in snapshot.log_dirs:
        for replica in log_dir.replicas:
            sizes[log_dir.broker_id] += replica.size_bytes
            topics[replica.partition.topic] += replica.size_bytes
    for broker in known.brokers:
        labels = {
            **cluster,
            "broker_id": broker.id,
            "address": broker.host,
            "port": broker.port,
            "rack_id": broker.rack or "",
        }
        is_controller = str(broker.id == known.controller_id).lower()
        sheet.add("kminion_kafka_broker_info", {**labels, "is_controller": is_controller}, 1)
        if broker.id in sizes:
            sheet.add("kminion_kafka_broker_log_dir_size_total_bytes", labels, sizes[broker.id])
    for name, size in topics.items():
        labels = {**cluster, "topic_name": name}
        sheet.add("kminion_kafka_topic_log_dir_size_total_bytes", labels, size)
    for mark, offsets in (("high", snapshot.ends), ("low", snapshot.starts)):
        sums: dict[str, int] = defaultdict(int)
        for place, offset in offsets.items():
            labels = {**cluster, "topic_name": place.topic, "partition_id": place.partition}
            sheet.add(f"kminion_kafka_topic_partition_{mark}_water_mark", labels, offset)
            sums[place.topic] += offset
        for name, total in sums.items():
            labels = {**cluster, "topic_name": name}
            sheet.add(f"kminion_kafka_topic_{mark}_water_mark_sum", labels, total)
    _kminion_groups(sheet, snapshot)


def _kminion_groups(sheet: Sheet, snapshot: ClusterSnapshot) -> None:
    cluster = {"cluster": snapshot.name}
    for one in snapshot.groups:
        group = {**cluster, "group_id": one.group.group_id}
        info = {
            **group,
            "state": one.group.state,
            "protocol": one.group.assignor,
            "protocol_type": "consumer",
            "coordinator_id": one.group.coordinator.id,
            "member_count": len(one.group.members),
        }
        # As in kminion: 0 for a group that is not stable.
        sheet.add("kminion_kafka_consumer_group_info", info, int(one.group.state == "Stable"))
        sheet.add("kminion_kafka_consumer_group_members", group, len(one.group.members))
        by_topic: dict[str, int] = defaultdict(int)
        offsets: dict[str, int] = defaultdict(int)
        for lag in _committed(one.partitions):
            by_topic[lag.place.topic] += max(0, lag.lag or 0)
            offsets[lag.place.topic] += lag.current_offset or 0
            sheet.add(
                "kminion_kafka_consumer_group_topic_partition_lag",
                {**group, "topic_name": lag.place.topic, "partition_id": lag.place.partition},
                max(0, lag.lag or 0),
            )
        for topic, records in by_topic.items():
            labels = {**group, "topic_name": topic}
            sheet.add("kminion_kafka_consumer_group_topic_lag", labels, records)
            name = "kminion_kafka_consumer_group_topic_offset_sum"
            sheet.add(name, labels, offsets[topic])


def _own(sheet: Sheet, snapshot: ClusterSnapshot) -> None:
    """What no exporter has: verdicts, time to zero, brokers that do not answer."""
    cluster = {"cluster": snapshot.name}
    for failure in snapshot.unanswered:
        sheet.add("kctl_broker_unanswered", {**cluster, "id": failure.broker_id}, 1)
    for log_dir in snapshot.log_dirs:
        labels = {**cluster, "id": log_dir.broker_id, "log_dir": log_dir.path}
        for name, size in (("total", log_dir.total_bytes), ("usable", log_dir.usable_bytes)):
            if size is not None:  # Kafka before 3.3 does not report it
                sheet.add(f"kctl_log_dir_{name}_bytes", labels, size)
    addresses = {broker.id: str(broker) for broker in snapshot.cluster.brokers}
    for broker_id, expiry_s in snapshot.certificates.items():
        labels = {**cluster, "id": broker_id, "address": addresses[broker_id]}
        sheet.add("kctl_broker_certificate_expiry_seconds", labels, expiry_s)
    for (group, place), movement in snapshot.movements.items():
        labels = {
            **cluster,
            "group": group,
            "topic": place.topic,
            "partition": place.partition,
        }
        sheet.add("kctl_group_verdict", {**labels, "verdict": str(movement.verdict)}, 1)
        if movement.caught_up_in_s is not None:
            sheet.add("kctl_group_time_to_zero_seconds", labels, movement.caught_up_in_s)


def _probes(sheet: Sheet, snapshot: ClusterSnapshot) -> None:
    """The end-to-end probe, under the names of kminion, whichever names are served."""
    stem = "kminion_end_to_end"
    for partition, found in snapshot.probes.items():
        labels = {"cluster": snapshot.name, "partition_id": partition}
        for name, value in (
            ("produced", found.produced),
            ("produced_failed", found.failed),
            ("received", found.received),
            ("lost", found.lost),
        ):
            sheet.add(f"{stem}_messages_{name}_total", labels, value)
        for name, times in (
            ("produce_latency_seconds", found.produce_times),
            ("roundtrip_latency_seconds", found.roundtrip_times),
        ):
            for bound_s, count in zip(times.BOUNDS_S, times.counts, strict=True):
                sheet.add(f"{stem}_{name}_bucket", {**labels, "le": bound_s}, count)
            sheet.add(f"{stem}_{name}_bucket", {**labels, "le": "+Inf"}, times.count)
            sheet.add(f"{stem}_{name}_sum", labels, times.sum_s)
            sheet.add(f"{stem}_{name}_count", labels, times.count)


def _committed(lags: Iterable[PartitionLag]) -> Iterator[PartitionLag]:
    """Partitions with a committed offset and a known end."""
    return (lag for lag in lags if lag.lag is not None)
