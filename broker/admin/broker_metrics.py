"""Metrics of the broker itself: replicas, ISR changes, purgatory, network, sessions, process."""

import os
import resource
import time
from collections import Counter
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
    """All metrics that are not labelled with a topic, an API or a group."""
    yield gauge("server_kafkaserver_brokerstate", "State of the broker; 3: running.").add(
        sources.state
    )
    yield from _network(sources)
    yield from _disk()
    if sources.session is not None:
        yield counter(
            "server_sessionexpirelistener_zookeeperexpires", "Expired metadata sessions."
        ).add(sources.session.num_expired)
        yield counter(
            "server_sessionexpirelistener_zookeeperdisconnects", "Lost metadata connections."
        ).add(sources.session.num_disconnected)
        yield counter(
            "server_sessionexpirelistener_zookeepersyncconnects", "Metadata connections."
        ).add(sources.session.num_connected)
        yield counter(
            "server_sessionexpirelistener_zookeeperauthfailures", "Refused authentications."
        ).add(sources.session.num_auth_failed)
    if sources.services is not None:
        yield from _replicas(sources.services)
        yield from _purgatory(sources.services)


def _network(sources: AdminSources) -> Iterator[Metric]:
    poller = sources.poller
    if poller is not None:
        up_s = max(time.perf_counter() - sources.started_s, 1e-9)
        idle = min(poller.idle_s / up_s, 1.0)
        before, now = sources.since(), sources.mark()
        lately = min((now.idle_s - before.idle_s) / max(now.time_s - before.time_s, 1e-9), 1.0)
        text = "Share of the last one to two minutes that the event loop waited for events."
        # Strimzi's rules name it with an underscore, the exporter's own without.
        yield gauge("network_socketserver_networkprocessoravgidlepercent", text).add(lately)
        yield gauge("network_socketserver_networkprocessoravgidle_percent", text).add(lately)
        handlers = "server_kafkarequesthandlerpool_requesthandleravgidle"
        # Strimzi's rules take the mean since the start, Confluent's the rate of the last minute.
        since_start = "Share of the time since the start that the event loop waited for events."
        yield gauge(f"{handlers}_percent", since_start).add(idle)
        yield gauge(f"{handlers}percent_oneminuterate", text).add(lately)
        yield counter("network_socketserver_idle_seconds", "Seconds without events.").add(
            poller.idle_s
        )
    yield from _connections(sources)


def _socket_gauge(name: str, text: str, *labels: str, confluent: str | None = None) -> Metric:
    every = (*labels, "listener", "networkProcessor")
    metric = gauge(f"server_socket_server_metrics_{name}", text, *every)
    metric.confluent = f"server_socketservermetrics_{confluent or name}"
    return metric


def _connections(sources: AdminSources) -> Iterator[Metric]:
    """Open connections, also by client software, and rates of the last one to two minutes."""
    opened = _socket_gauge("connection_count", "Connections.")
    created = _socket_gauge("connection_creation_rate", "New connections per second.")
    closed = _socket_gauge("connection_close_rate", "Closed connections per second.")
    software = _socket_gauge(
        "connections_software",
        "Connections by client software.",
        *("clientSoftwareName", "clientSoftwareVersion"),
        confluent="connections",
    )
    accepted = counter(
        "server_socket_server_metrics_connection_creation",
        "Accepted.",
        *("listener", "networkProcessor"),
    )
    before, now = sources.since(), sources.mark()
    seconds = max(now.time_s - before.time_s, 1e-9)
    for name, listener in sources.listeners.items():
        new = now.accepted[name] - before.accepted.get(name, 0)
        gone = new - (now.opened[name] - before.opened.get(name, 0))
        opened.add(now.opened[name], name, _PROCESSOR)
        accepted.add(now.accepted[name], name, _PROCESSOR)
        created.add(new / seconds, name, _PROCESSOR)
        closed.add(gone / seconds, name, _PROCESSOR)
        known = sources.requests.software
        counts = Counter(known[one] for one in listener.addresses if one in known)
        for (client, version), count in counts.items():
            software.add(count, client, version, name, _PROCESSOR)
    yield from (opened, accepted, created, closed, software)


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
            "reassigningpartitions",
            "Led, with replicas being added or removed.",
            sum(p.state.is_reassigning for p in led),
        ),
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
    yield counter(
        "server_fetchsessioncache_incrementalfetchsessionevictions", "Evicted fetch sessions."
    ).add(services.fetch_sessions.num_evicted)
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


def _disk() -> Iterator[Metric]:
    """Bytes that this process read from disks and wrote to them, as Linux counts them."""
    try:
        with open("/proc/self/io") as file:  # noqa: PTH123
            counts = dict(line.strip().split(": ") for line in file)
    except OSError:  # not Linux, or not permitted
        return
    for name in ("read", "write"):
        value = int(counts[f"{name}_bytes"])
        yield gauge(f"server_kafkaserver_linux_disk_{name}_bytes", f"Bytes: {name}.").add(value)


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
