"""Rows of brokers, topics, partitions, replicas and reassignments."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from broker.model import TopicPartition
from kctl.model.log_dirs import LogDir
from kctl.model.top import Rates, ReplicaKey, TopSample
from kctl.model.topics import Partition, Topic
from kctl.views.reassignments import copying_row
from kctl.views.top.numbers import duration, milliseconds, rounded, total

Rows = list[dict[str, object]]


def broker_rows(sample: TopSample) -> Rows:
    """A row per broker."""
    snapshot, rates = sample.reading.snapshot, sample.rates
    failed = {failure.broker_id for failure in snapshot.unanswered}
    partitions = [one for topic in snapshot.topics for one in topic.partitions]
    leaders = Counter(one.leader for one in partitions)
    under = Counter(one.leader for one in partitions if one.is_under_replicated)
    replicas = Counter(broker_id for one in partitions for broker_id in one.replicas)
    known = {broker.id: str(broker) for broker in snapshot.cluster.brokers}
    rows: Rows = []
    for broker_id in sorted(known.keys() | replicas.keys()):
        dirs = [one for one in snapshot.log_dirs if one.broker_id == broker_id]
        counters = sample.reading.counters.get(broker_id)
        rows.append(
            {
                "broker": broker_id,
                "address": known.get(broker_id),
                "status": _status(broker_id, known, failed),
                "controller": broker_id == snapshot.cluster.controller_id,
                **_rate_fields(rates.brokers.get(broker_id)),
                "requests": rounded(rates.requests.get(broker_id)),
                "produce_p99_ms": counters.produce_p99_ms if counters else None,
                "leaders": leaders[broker_id],
                "replicas": replicas[broker_id],
                "under_replicated": under[broker_id],
                "size_bytes": sum(r.size_bytes for one in dirs for r in one.replicas)
                if dirs
                else None,
                "disk_used": _used(dirs),
                "usable_bytes": total(one.usable_bytes for one in dirs),
                "total_bytes": total(one.total_bytes for one in dirs),
            }
        )
    return rows


def _used(dirs: Sequence[LogDir]) -> float | None:
    """The used share of the disk that is fullest."""
    shares = [
        1 - one.usable_bytes / one.total_bytes
        for one in dirs
        if one.total_bytes and one.usable_bytes is not None
    ]
    return round(max(shares), 3) if shares else None


def _status(broker_id: int, known: Collection[int], failed: Collection[int]) -> str:
    """`unavailable`: not registered; `failed`: registered, but it did not answer."""
    if broker_id not in known:
        return "unavailable"
    return "failed" if broker_id in failed else "ok"


def topic_rows(sample: TopSample) -> Rows:
    """A row per topic."""
    snapshot = sample.reading.snapshot
    sizes = _leader_sizes(sample)
    readers: dict[str, set[str]] = {}
    lags: dict[str, int] = {}
    for group in snapshot.groups:
        for lag in group.partitions:
            readers.setdefault(lag.place.topic, set()).add(group.group.group_id)
            lags[lag.place.topic] = lags.get(lag.place.topic, 0) + (lag.lag or 0)
    return [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": topic.replication_factor,
            **_rate_fields(sample.rates.topics.get(topic.name)),
            "history": _history(sample.rates.topic_history.get(topic.name, ())),
            "size_bytes": total(sizes.get(place) for _, place in _places(topic)),
            "under_replicated": sum(one.is_under_replicated for one in topic.partitions),
            "offline": sum(one.leader is None for one in topic.partitions),
            "groups": len(readers.get(topic.name, ())),
            "lag": lags.get(topic.name),
        }
        for topic in snapshot.topics
    ]


def partition_rows(
    sample: TopSample, topic: str | None = None, broker_id: int | None = None
) -> Rows:
    """A row per partition of all topics or one, with a replica on any broker or one."""
    sizes = _leader_sizes(sample)
    snapshot = sample.reading.snapshot
    return [
        {
            "topic": place.topic,
            "partition": place.partition,
            "leader": one.leader,
            "replicas": list(one.replicas),
            "isr": list(one.isr),
            "log_start_offset": snapshot.starts.get(place),
            "high_watermark": snapshot.ends.get(place),
            "log_end_offset": _leader_end(sample, place, one),
            "replica_lags": _replica_lags(sample, place, one),
            **_rate_fields(sample.rates.partitions.get(place)),
            "size_bytes": sizes.get(place),
        }
        for found in snapshot.topics
        if topic is None or found.name == topic
        for one, place in _places(found)
        if broker_id is None or broker_id in one.replicas
    ]


def replica_rows(sample: TopSample, place: TopicPartition) -> Rows:
    """A row per replica of a partition."""
    found = _partition(sample, place)
    if found is None:
        return []
    dirs = [
        (log_dir, replica)
        for log_dir in sample.reading.snapshot.log_dirs
        for replica in log_dir.replicas
        if replica.partition == place
    ]
    rows: Rows = []
    for broker_id in found.replicas:
        own = [(d, r) for d, r in dirs if d.broker_id == broker_id]
        current = next(((d, r) for d, r in own if not r.is_future), None)
        rows.append(
            {
                "broker": broker_id,
                "role": "leader" if broker_id == found.leader else "follower",
                "status": "ok" if broker_id in found.isr else "lagging",
                "log_end_offset": sample.reading.replica_ends.get((place, broker_id)),
                "lag": _replica_lag(sample, place, found, broker_id),
                "size_bytes": current[1].size_bytes if current else None,
                "log_dir": current[0].path if current else None,
                "future": next((d.path for d, r in own if r.is_future), None),
            }
        )
    return rows


def reassignment_rows(sample: TopSample) -> Rows:
    """A row per reassignment in progress."""
    rows = []
    for place, one in sample.reading.moving.items():
        copy = sample.rates.copies[place]
        left = copy.seconds_left
        rows.append(
            copying_row(one, copy.arrived_bytes, copy.move_bytes)
            | {
                "bytes_per_s": rounded(copy.bytes_per_s),
                "time_left": duration(left),
                "time_left_ms": milliseconds(left),
            }
        )
    return rows


def _rate_fields(rates: Rates | None) -> dict[str, object]:
    found = rates or Rates()
    return {
        "messages_in": rounded(found.messages_in),
        "bytes_in": rounded(found.bytes_in),
        "bytes_out": rounded(found.bytes_out),
    }


def _places(topic: Topic) -> list[tuple[Partition, TopicPartition]]:
    return [(one, TopicPartition(topic.name, one.id)) for one in topic.partitions]


def _partition(sample: TopSample, place: TopicPartition) -> Partition | None:
    for topic in sample.reading.snapshot.topics:
        if topic.name == place.topic:
            return next((one for one in topic.partitions if one.id == place.partition), None)
    return None


def _leader_sizes(sample: TopSample) -> dict[TopicPartition, int]:
    sizes: Mapping[ReplicaKey, int] = sample.reading.snapshot.replica_sizes()
    return {
        place: sizes[place, one.leader]
        for topic in sample.reading.snapshot.topics
        for one, place in _places(topic)
        if one.leader is not None and (place, one.leader) in sizes
    }


def _leader_end(sample: TopSample, place: TopicPartition, one: Partition) -> int | None:
    return None if one.leader is None else sample.reading.replica_ends.get((place, one.leader))


def _replica_lag(
    sample: TopSample, place: TopicPartition, one: Partition, broker_id: int
) -> int | None:
    """Records that a replica lacks; None if unknown. 0 if it was read after its leader and is
    ahead."""
    end = _leader_end(sample, place, one)
    own = sample.reading.replica_ends.get((place, broker_id))
    return None if end is None or own is None else max(0, end - own)


def _replica_lags(
    sample: TopSample, place: TopicPartition, one: Partition
) -> dict[str, int | None]:
    """The lag of each follower by broker id."""
    return {
        str(broker_id): _replica_lag(sample, place, one, broker_id)
        for broker_id in one.replicas
        if broker_id != one.leader
    }


def _history(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, 1) for value in values]
