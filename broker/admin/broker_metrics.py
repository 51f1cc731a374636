"""Metrics of the broker itself: replicas, ISR changes, purgatory, network, sessions, process."""

import os
import resource
import time
from collections.abc import Iterator
from typing import Final

from broker.admin.dialects import Metric, counter, gauge
from broker.admin.exposition import Family, Kind
from broker.admin.sources import AdminSources
from broker.api.context import Services
from broker.replica.delayed_operations import DelayedDeleteRecords, DelayedFetch, DelayedProduce

_PROCESSOR: Final = "0"
"""There is one event loop, where Kafka numbers its network threads."""
_OPERATIONS: Final = {
    "Produce": DelayedProduce,
    "Fetch": DelayedFetch,
    "DeleteRecords": DelayedDeleteRecords,
}
_PAGE_BYTES: Final = resource.getpagesize()


def broker_metrics(sources: AdminSources) -> Iterator[Metric]:
    """Everything that has no label of a topic, an API or a group."""
    yield gauge("server_kafkaserver_brokerstate", "State of the broker; 3: running.").add(
        sources.state
    )
    yield from _network(sources)
    if sources.session is not None:
        yield counter(
            "server_sessionexpirelistener_zookeeperexpires", "Expired metadata sessions."
        ).add(sources.session.num_expired)
        yield counter(
            "server_sessionexpirelistener_zookeeperdisconnects", "Lost metadata connections."
        ).add(sources.session.num_disconnected)
    if sources.services is not None:
        yield from _replicas(sources.services)
        yield from _purgatory(sources.services)


def _network(sources: AdminSources) -> Iterator[Metric]:
    poller = sources.poller
    if poller is not None:
        up_s = max(time.perf_counter() - sources.started_s, 1e-9)
        idle = min(poller.idle_s / up_s, 1.0)
        text = "Share of the time that the event loop waits for events."
        # Strimzi's rules name it with an underscore, the exporter's own without.
        yield gauge("network_socketserver_networkprocessoravgidlepercent", text).add(idle)
        yield gauge("network_socketserver_networkprocessoravgidle_percent", text).add(idle)
        yield gauge("server_kafkarequesthandlerpool_requesthandleravgidle_percent", text).add(idle)
        yield counter("network_socketserver_idle_seconds", "Seconds without events.").add(
            poller.idle_s
        )
    labels = ("listener", "networkProcessor")
    connections = gauge("server_socket_server_metrics_connection_count", "Connections.", *labels)
    accepted = counter("server_socket_server_metrics_connection_creation", "Accepted.", *labels)
    for name, listener in sources.listeners.items():
        connections.add(listener.num_connections, name, _PROCESSOR)
        accepted.add(listener.num_accepted, name, _PROCESSOR)
    yield connections
    yield accepted


def _replicas(services: Services) -> Iterator[Metric]:
    replicas = services.replicas
    partitions = list(replicas.partitions.values())
    led = [partition for partition in partitions if partition.is_leader]
    under_min = [p for p in led if p.is_under_min_isr]
    at_min = [p for p in led if len(p.state.isr) == p.effective_min_isr]
    under_replicated = [p for p in led if len(p.state.isr) < len(p.state.replicas)]
    for name, text, value in (
        ("partitioncount", "Partitions with a replica here.", len(partitions)),
        ("leadercount", "Partitions that this broker leads.", len(led)),
        ("underreplicatedpartitions", "Led, with replicas out of sync.", len(under_replicated)),
        ("underminisrpartitioncount", "Led, below min.insync.replicas.", len(under_min)),
        ("atminisrpartitioncount", "Led, exactly at min.insync.replicas.", len(at_min)),
        ("offlinereplicacount", "Replicas in failed log directories.", len(replicas.offline)),
        (
            "produceridcount",
            "Producer ids known to the partitions.",
            sum(len(p.log.active_producers) for p in partitions),
        ),
    ):
        yield gauge(f"server_replicamanager_{name}", text).add(value)
    lags = [p.leader_high_watermark - p.log.log_end_offset for p in partitions if not p.is_leader]
    yield gauge(
        "server_replicafetchermanager_maxlag", "Records that a follower lacks.", "clientId"
    ).add(max(0, *lags, 0), "Replica")
    environment = replicas.environment
    for name, text, value in (
        ("isrshrinks", "Replicas removed from an ISR.", environment.num_isr_shrinks),
        ("isrexpands", "Replicas added to an ISR.", environment.num_isr_expands),
        ("failedisrupdates", "Refused ISR changes.", environment.num_failed_isr_updates),
    ):
        yield counter(f"server_replicamanager_{name}", text).add(value)
    offline = len(replicas.logs.offline_dirs)
    yield gauge("log_logmanager_offlinelogdirectorycount", "Failed log directories.").add(offline)
    yield gauge(
        "server_fetchsessioncache_numincrementalfetchsessions", "Incremental fetch sessions."
    ).add(len(services.fetch_sessions))
    yield gauge("server_missed_wakeups", "Wake-ups that a timer made up for: bugs.").add(
        replicas.num_missed_wakeups
    )


def _purgatory(services: Services) -> Iterator[Metric]:
    sizes = services.purgatory.sizes()
    waiting = gauge(
        "server_delayedoperationpurgatory_purgatorysize", "Waiting requests.", "delayedOperation"
    )
    for name, operation in _OPERATIONS.items():
        waiting.add(sizes[operation], name)
    yield waiting


def process_families() -> Iterator[Family]:
    """The process, under the names that Prometheus' own client libraries use."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield Family(
        "process_cpu_seconds_total",
        "User and system CPU time.",
        Kind.COUNTER,
        samples=[((), usage.ru_utime + usage.ru_stime)],
    )
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield Family("process_max_fds", "Limit of open files.", samples=[((), limit)])
    try:
        num_fds = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # a third of the time of Path
        with open("/proc/self/statm") as statm:  # noqa: PTH123
            resident = int(statm.read().split()[1]) * _PAGE_BYTES
    except OSError:  # not Linux
        return
    yield Family("process_open_fds", "Open files.", samples=[((), num_fds)])
    yield Family("process_resident_memory_bytes", "Resident memory.", samples=[((), resident)])
