"""Broker settings of KRaft."""

from broker.config.definitions import HIGH, LOW, Settings, boolean, integer, long, string, strings
from broker.config.units import DAY_MS, GIB, HOUR_MS, MIB, MINUTE_MS
from broker.config.validators import at_least, one_of
from broker.config.values import MAX_LONG


class KraftSettings(Settings):
    """Clusters without ZooKeeper: understood, so that Kafka's files are; not served here."""

    process_roles: tuple[str, ...] = strings(
        "process.roles", default=(), valid=one_of("broker", "controller"), importance=HIGH
    )
    """The roles in a KRaft cluster; empty is a cluster with ZooKeeper."""
    node_id: int = integer("node.id", default=-1, importance=HIGH)
    """The same as `broker.id`, in KRaft's words."""
    initial_broker_registration_timeout_ms: int = integer(
        "initial.broker.registration.timeout.ms", default=MINUTE_MS
    )
    """How long the first registration with the quorum may take."""
    broker_heartbeat_interval_ms: int = integer("broker.heartbeat.interval.ms", default=2000)
    """How often the quorum hears from a broker."""
    broker_session_timeout_ms: int = integer("broker.session.timeout.ms", default=9000)
    """How long the quorum waits for a broker before it counts as gone."""
    controller_listener_names: str | None = string(
        "controller.listener.names", default=None, importance=HIGH
    )
    """The listeners of the controllers."""
    sasl_mechanism_controller_protocol: str = string(
        "sasl.mechanism.controller.protocol", default="GSSAPI", importance=HIGH
    )
    """The mechanism by which one logs in to the controllers."""
    controller_quorum_voters: tuple[str, ...] = strings(
        "controller.quorum.voters", default=(), importance=HIGH
    )
    """The voters of the quorum, `id@host:port`."""
    controller_quorum_bootstrap_servers: tuple[str, ...] = strings(
        "controller.quorum.bootstrap.servers", default=(), importance=HIGH
    )
    """Where the quorum is found."""
    controller_quorum_election_timeout_ms: int = integer(
        "controller.quorum.election.timeout.ms", default=1000, importance=HIGH
    )
    """How long a voter goes without a leader before it stands for election."""
    controller_quorum_fetch_timeout_ms: int = integer(
        "controller.quorum.fetch.timeout.ms", default=2000, importance=HIGH
    )
    """How long a voter goes without a fetch that succeeds."""
    controller_quorum_election_backoff_max_ms: int = integer(
        "controller.quorum.election.backoff.max.ms", default=1000, importance=HIGH
    )
    """The longest pause before the next election."""
    controller_quorum_append_linger_ms: int = integer(
        "controller.quorum.append.linger.ms", default=25
    )
    """How long the leader gathers writes."""
    controller_quorum_request_timeout_ms: int = integer(
        "controller.quorum.request.timeout.ms", default=2000
    )
    """How long a voter waits for an answer."""
    controller_quorum_retry_backoff_ms: int = integer(
        "controller.quorum.retry.backoff.ms", default=20, importance=LOW
    )
    """The pause before a voter asks again."""
    metadata_log_dir: str | None = string("metadata.log.dir", default=None, importance=HIGH)
    """The directory of the metadata log."""
    metadata_log_segment_bytes: int = integer(
        "metadata.log.segment.bytes", default=GIB, valid=at_least(12), importance=HIGH
    )
    """Segment size of the metadata log."""
    metadata_log_segment_min_bytes: int = integer(
        "metadata.log.segment.min.bytes",
        default=8 * MIB,
        valid=at_least(12),
        importance=HIGH,
        internal=True,
    )
    """The smallest segment size the metadata log may have."""
    metadata_log_segment_ms: int = long(
        "metadata.log.segment.ms", default=7 * DAY_MS, importance=HIGH
    )
    """The age at which a segment of the metadata log is closed."""
    metadata_log_max_record_bytes_between_snapshots: int = long(
        "metadata.log.max.record.bytes.between.snapshots",
        default=20 * MIB,
        valid=at_least(1),
        importance=HIGH,
    )
    """Bytes of records after which a snapshot is taken."""
    metadata_log_max_snapshot_interval_ms: int = long(
        "metadata.log.max.snapshot.interval.ms", default=HOUR_MS, valid=at_least(0), importance=HIGH
    )
    """Time after which a snapshot is taken."""
    metadata_max_retention_bytes: int = long(
        "metadata.max.retention.bytes", default=100 * MIB, importance=HIGH
    )
    """The size of metadata log and snapshots before old ones go."""
    metadata_max_retention_ms: int = long(
        "metadata.max.retention.ms", default=7 * DAY_MS, importance=HIGH
    )
    """How long metadata log and snapshots are kept."""
    metadata_max_idle_interval_ms: int = integer(
        "metadata.max.idle.interval.ms", default=500, valid=at_least(0), importance=LOW
    )
    """How often an idle quorum writes a record."""
    server_max_startup_time_ms: int = long(
        "server.max.startup.time.ms", default=MAX_LONG, valid=at_least(0), internal=True
    )
    """How long the start may take."""
    eligible_leader_replicas_enable: bool = boolean(
        "eligible.leader.replicas.enable", default=False, importance=HIGH
    )
    """Whether replicas outside the ISR that lack nothing are remembered."""
