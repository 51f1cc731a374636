"""Broker settings for KRaft."""

from typing import Final

from broker.config.definitions import (
    HIGH,
    LOW,
    Settings,
    boolean,
    integer,
    long,
    no_effect,
    rejected,
    string,
    strings,
)
from broker.config.units import DAY_MS, GIB, HOUR_MS, MIB, MINUTE_MS
from broker.config.validators import at_least, one_of
from broker.config.values import MAX_LONG

_KRAFT_ONLY: Final = no_effect("only KRaft uses it, which this broker does not have")


class KraftSettings(Settings):
    """KRaft: declared so that Kafka's files can be read; this broker does not support it."""

    process_roles: tuple[str, ...] = strings(
        "process.roles",
        default=(),
        valid=one_of("broker", "controller"),
        importance=HIGH,
        effect=rejected("this broker has no KRaft mode; remove the setting"),
    )
    """The roles of the process in a KRaft cluster; empty with ZooKeeper."""
    node_id: int = integer("node.id", default=-1, importance=HIGH)
    """The id of the node; the same as `broker.id`."""
    initial_broker_registration_timeout_ms: int = integer(
        "initial.broker.registration.timeout.ms", default=MINUTE_MS, effect=_KRAFT_ONLY
    )
    """How long the first registration with the controller quorum may take."""
    broker_heartbeat_interval_ms: int = integer(
        "broker.heartbeat.interval.ms", default=2000, effect=_KRAFT_ONLY
    )
    """The interval of heartbeats to the controller quorum."""
    broker_session_timeout_ms: int = integer(
        "broker.session.timeout.ms", default=9000, effect=_KRAFT_ONLY
    )
    """How long the controller quorum waits for a heartbeat before it fences a broker."""
    controller_listener_names: str | None = string(
        "controller.listener.names",
        default=None,
        importance=HIGH,
        effect=rejected("this broker has no KRaft mode; remove the setting"),
    )
    """The listeners of the controller."""
    sasl_mechanism_controller_protocol: str = string(
        "sasl.mechanism.controller.protocol", default="GSSAPI", importance=HIGH, effect=_KRAFT_ONLY
    )
    """The SASL mechanism for connections to the controller."""
    controller_quorum_voters: tuple[str, ...] = strings(
        "controller.quorum.voters",
        default=(),
        importance=HIGH,
        effect=rejected("this broker has no KRaft mode; remove the setting"),
    )
    """The voters of the controller quorum, `id@host:port`."""
    controller_quorum_bootstrap_servers: tuple[str, ...] = strings(
        "controller.quorum.bootstrap.servers",
        default=(),
        importance=HIGH,
        effect=rejected("this broker has no KRaft mode; remove the setting"),
    )
    """Addresses of the controller quorum."""
    controller_quorum_election_timeout_ms: int = integer(
        "controller.quorum.election.timeout.ms", default=1000, importance=HIGH, effect=_KRAFT_ONLY
    )
    """How long a voter waits without a leader before it starts an election."""
    controller_quorum_fetch_timeout_ms: int = integer(
        "controller.quorum.fetch.timeout.ms", default=2000, importance=HIGH, effect=_KRAFT_ONLY
    )
    """How long a voter waits without a successful fetch before it becomes a candidate."""
    controller_quorum_election_backoff_max_ms: int = integer(
        "controller.quorum.election.backoff.max.ms",
        default=1000,
        importance=HIGH,
        effect=_KRAFT_ONLY,
    )
    """The maximum wait before the next election."""
    controller_quorum_append_linger_ms: int = integer(
        "controller.quorum.append.linger.ms", default=25, effect=_KRAFT_ONLY
    )
    """How long the leader collects writes before it flushes them."""
    controller_quorum_request_timeout_ms: int = integer(
        "controller.quorum.request.timeout.ms", default=2000, effect=_KRAFT_ONLY
    )
    """How long a voter waits for a response."""
    controller_quorum_retry_backoff_ms: int = integer(
        "controller.quorum.retry.backoff.ms", default=20, importance=LOW, effect=_KRAFT_ONLY
    )
    """The wait before a failed request is retried."""
    metadata_log_dir: str | None = string(
        "metadata.log.dir", default=None, importance=HIGH, effect=_KRAFT_ONLY
    )
    """The directory of the metadata log."""
    metadata_log_segment_bytes: int = integer(
        "metadata.log.segment.bytes",
        default=GIB,
        valid=at_least(12),
        importance=HIGH,
        effect=_KRAFT_ONLY,
    )
    """The segment size of the metadata log."""
    metadata_log_segment_min_bytes: int = integer(
        "metadata.log.segment.min.bytes",
        default=8 * MIB,
        valid=at_least(12),
        importance=HIGH,
        internal=True,
        effect=_KRAFT_ONLY,
    )
    """The minimum segment size of the metadata log."""
    metadata_log_segment_ms: int = long(
        "metadata.log.segment.ms", default=7 * DAY_MS, importance=HIGH, effect=_KRAFT_ONLY
    )
    """The age at which a segment of the metadata log is rolled."""
    metadata_log_max_record_bytes_between_snapshots: int = long(
        "metadata.log.max.record.bytes.between.snapshots",
        default=20 * MIB,
        valid=at_least(1),
        importance=HIGH,
        effect=_KRAFT_ONLY,
    )
    """Bytes of records after which a snapshot is written."""
    metadata_log_max_snapshot_interval_ms: int = long(
        "metadata.log.max.snapshot.interval.ms",
        default=HOUR_MS,
        valid=at_least(0),
        importance=HIGH,
        effect=_KRAFT_ONLY,
    )
    """The interval after which a snapshot is written."""
    metadata_max_retention_bytes: int = long(
        "metadata.max.retention.bytes", default=100 * MIB, importance=HIGH, effect=_KRAFT_ONLY
    )
    """The maximum size of the metadata log and snapshots before old ones are deleted."""
    metadata_max_retention_ms: int = long(
        "metadata.max.retention.ms", default=7 * DAY_MS, importance=HIGH, effect=_KRAFT_ONLY
    )
    """How long the metadata log and snapshots are kept."""
    metadata_max_idle_interval_ms: int = integer(
        "metadata.max.idle.interval.ms",
        default=500,
        valid=at_least(0),
        importance=LOW,
        effect=_KRAFT_ONLY,
    )
    """How often an idle quorum writes a no-op record."""
    server_max_startup_time_ms: int = long(
        "server.max.startup.time.ms",
        default=MAX_LONG,
        valid=at_least(0),
        internal=True,
        effect=_KRAFT_ONLY,
    )
    """The maximum duration of the start."""
    eligible_leader_replicas_enable: bool = boolean(
        "eligible.leader.replicas.enable", default=False, importance=HIGH, effect=_KRAFT_ONLY
    )
    """Whether eligible leader replicas are tracked (KIP-966)."""
