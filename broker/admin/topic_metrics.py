"""Metrics per topic (traffic) and per partition (offsets, sizes, ISR)."""

from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from time import sleep
from typing import Final

from broker.admin.dialects import Metric, counter, gauge
from broker.api.context import Services

_TRAFFIC: Final = (
    ("messagesin", "messages_in", "Records appended as the leader."),
    ("bytesin", "bytes_in", "Bytes appended as the leader."),
    ("bytesout", "bytes_out", "Bytes sent to consumers."),
    ("replicationbytesin", "replication_bytes_in", "Bytes appended as a follower."),
    ("replicationbytesout", "replication_bytes_out", "Bytes sent to followers."),
    ("totalproducerequests", "produce_requests", "Partitions of produce requests."),
    ("totalfetchrequests", "fetch_requests", "Partitions of fetch requests."),
    ("failedproducerequests", "failed_produce_requests", "Failed appends."),
    ("failedfetchrequests", "failed_fetch_requests", "Failed reads."),
)
"""Name of the metric, counter in TopicStats, text."""
_RARE_TRAFFIC: Final = (
    ("bytesrejected", "bytes_rejected", "Bytes of batches above max.message.bytes."),
    ("producemessageconversions", "produce_message_conversions", "Records of old formats."),
    ("fetchmessageconversions", "fetch_message_conversions", "Records for old consumers."),
    ("reassignmentbytesin", "reassignment_bytes_in", "Bytes appended by added replicas."),
    ("reassignmentbytesout", "reassignment_bytes_out", "Bytes sent to added replicas."),
)
"""The same; topics have a series only after it happened, as in Kafka."""

_PARTITIONS_PER_TURN: Final = 100
"""After this many the event loop gets a chance to run: both threads share one interpreter."""


def traffic_metrics(services: Services) -> Iterator[Metric]:
    """BrokerTopicMetrics: of all topics without a label, then of each topic."""
    stats = services.replicas.environment.topic_stats
    total = stats.total()
    by_topic = [((topic,), one) for topic, one in stats.by_topic().items()]
    for name, attribute, text in _TRAFFIC:
        metric = counter(f"server_brokertopicmetrics_{name}", text, "topic")
        # The total has no topic label, as in Kafka: dashboards tell them apart by topic!="".
        metric.add(getattr(total, attribute))
        read = attrgetter(attribute)
        metric.samples += [(where, read(one)) for where, one in by_topic]
        sleep(0)
        yield metric
    for name, attribute, text in _RARE_TRAFFIC:
        metric = counter(f"server_brokertopicmetrics_{name}", text, "topic")
        metric.add(getattr(total, attribute))
        read = attrgetter(attribute)
        metric.samples += [(where, value) for where, one in by_topic if (value := read(one))]
        yield metric


def partition_metrics(services: Services, max_partitions: int) -> Iterator[Metric]:
    """Offsets and sizes of replicas, and the ISR of led partitions; at most `max_partitions`.

    The limit exists because every partition adds a dozen series, and beyond some number they cost
    monitoring systems more than they help. The number of omitted partitions is itself a metric.
    """
    labels = ("topic", "partition")
    size = gauge("log_log_size", "Bytes on disk.", *labels)
    end = gauge("log_log_logendoffset", "Log end offset.", *labels)
    start = gauge("log_log_logstartoffset", "Log start offset.", *labels)
    segments = gauge("log_log_numlogsegments", "Segments.", *labels)
    under = gauge("cluster_partition_underreplicated", "1: replicas are out of sync.", *labels)
    under_min = gauge("cluster_partition_underminisr", "1: below min.insync.replicas.", *labels)
    at_min = gauge("cluster_partition_atminisr", "1: at min.insync.replicas.", *labels)
    assigned = gauge("cluster_partition_replicascount", "Assigned replicas.", *labels)
    in_sync = gauge("cluster_partition_insyncreplicascount", "Replicas in sync.", *labels)
    text = "Records that the leader has and this follower lacks."
    lag = gauge("server_fetcherlagmetrics_consumerlag", text, "clientId", *labels)
    partitions = list(services.replicas.partitions.values())
    # Some microseconds per partition decide what a scrape costs.
    add_size, add_end, add_start = size.samples.append, end.samples.append, start.samples.append
    add_segments, add_under = segments.samples.append, under.samples.append
    add_under_min, add_at_min = under_min.samples.append, at_min.samples.append
    add_assigned, add_in_sync = assigned.samples.append, in_sync.samples.append
    for number, partition in enumerate(islice(partitions, max_partitions)):
        where = (partition.name.topic, str(partition.name.partition))
        log, state = partition.log, partition.state
        held = log.segments
        add_size((where, held.size_in_bytes))
        add_end((where, log.log_end_offset))
        add_start((where, log.log_start_offset))
        add_segments((where, len(held)))
        if state.leader == partition.broker_id:
            isr, replicas = len(state.isr), len(state.replicas)
            least = min(partition.min_insync_replicas, replicas)
            add_under((where, 1 if isr < replicas else 0))
            add_under_min((where, 1 if isr < least else 0))
            add_at_min((where, 1 if isr == least else 0))
            add_assigned((where, replicas))
            add_in_sync((where, isr))
        elif state.leader >= 0:
            behind = max(0, partition.leader_high_watermark - log.log_end_offset)
            lag.add(behind, f"ReplicaFetcherThread-0-{state.leader}", *where)
        if number % _PARTITIONS_PER_TURN == 0:
            sleep(0)
    yield from (size, end, start, segments, under, under_min, at_min, assigned, in_sync, lag)
    yield gauge(
        "server_metrics_partitions_left_out", "Partitions above metrics.max.partitions."
    ).add(max(0, len(partitions) - max_partitions))
