"""Broker settings of replication and the controller."""

from broker.config.definitions import CLUSTER_WIDE, HIGH, Settings, boolean, integer, long, string
from broker.config.units import KIB, MIB, MINUTE_MS
from broker.config.validators import at_least, kafka_version, one_of


class ReplicationSettings(Settings):
    """Replicas: how followers fetch, who leads, when a replica counts as in sync."""

    default_replication_factor: int = integer("default.replication.factor", default=1)
    """Replicas of a topic that is created without saying how many."""
    min_insync_replicas: int = integer(
        "min.insync.replicas", default=1, valid=at_least(1), importance=HIGH, mode=CLUSTER_WIDE
    )
    """Replicas that must have a record before acks=all is answered."""
    unclean_leader_election_enable: bool = boolean(
        "unclean.leader.election.enable", default=False, importance=HIGH, mode=CLUSTER_WIDE
    )
    """Whether a replica that lacks records may lead when no other is left."""
    unclean_leader_election_interval_ms: int = long(
        "unclean.leader.election.interval.ms",
        default=5 * MINUTE_MS,
        valid=at_least(1),
        internal=True,
    )
    """How often partitions that wait for an unclean election are looked for."""
    replica_lag_time_max_ms: int = long("replica.lag.time.max.ms", default=30_000, importance=HIGH)
    """How long a follower may lag before it is no longer in sync."""
    replica_socket_timeout_ms: int = integer(
        "replica.socket.timeout.ms", default=30_000, importance=HIGH
    )
    """How long a follower waits for the answer to a fetch."""
    replica_socket_receive_buffer_bytes: int = integer(
        "replica.socket.receive.buffer.bytes", default=64 * KIB, importance=HIGH
    )
    """SO_RCVBUF of a follower's sockets; -1 leaves it to the system."""
    replica_fetch_max_bytes: int = integer(
        "replica.fetch.max.bytes", default=MIB, valid=at_least(0)
    )
    """Bytes a follower asks for per partition."""
    replica_fetch_wait_max_ms: int = integer(
        "replica.fetch.wait.max.ms", default=500, importance=HIGH
    )
    """How long the leader may hold a follower's fetch back."""
    replica_fetch_min_bytes: int = integer("replica.fetch.min.bytes", default=1, importance=HIGH)
    """Bytes that make the leader answer a follower at once."""
    replica_fetch_response_max_bytes: int = integer(
        "replica.fetch.response.max.bytes", default=10 * MIB, valid=at_least(0)
    )
    """Bytes a follower asks for in one fetch."""
    replica_fetch_backoff_ms: int = integer(
        "replica.fetch.backoff.ms", default=1000, valid=at_least(0)
    )
    """The pause of a follower after a fetch that failed."""
    num_replica_fetchers: int = integer(
        "num.replica.fetchers", default=1, importance=HIGH, mode=CLUSTER_WIDE
    )
    """Fetchers per leader that a follower keeps going."""
    num_replica_alter_log_dirs_threads: int | None = integer(
        "num.replica.alter.log.dirs.threads", default=None, importance=HIGH
    )
    """Threads that move replicas between directories; as many as directories if not given."""
    replica_high_watermark_checkpoint_interval_ms: int = long(
        "replica.high.watermark.checkpoint.interval.ms", default=5000, importance=HIGH
    )
    """How often the high watermarks are written down."""
    replica_selector_class: str | None = string("replica.selector.class", default=None)
    """A class that picks the replica a consumer reads from."""
    auto_leader_rebalance_enable: bool = boolean(
        "auto.leader.rebalance.enable", default=True, importance=HIGH
    )
    """Whether leadership goes back to the preferred replicas by itself."""
    leader_imbalance_per_broker_percentage: int = integer(
        "leader.imbalance.per.broker.percentage", default=10, importance=HIGH
    )
    """The part of a broker's partitions led elsewhere that sets off the rebalancing."""
    leader_imbalance_check_interval_seconds: int = long(
        "leader.imbalance.check.interval.seconds", default=300, valid=at_least(1), importance=HIGH
    )
    """How often leadership is looked at for rebalancing."""
    controller_socket_timeout_ms: int = integer("controller.socket.timeout.ms", default=30_000)
    """How long the controller waits for a broker's answer."""
    controller_election: str = string(
        "controller.election", default="first", valid=one_of("first", "fair"), internal=True
    )
    """Who is elected controller: the first to try, or the one that has waited longest. Ours."""
    inter_broker_protocol_version: str = string(
        "inter.broker.protocol.version", default="3.9-IV0", valid=kafka_version
    )
    """The version brokers speak among themselves; raised when all are upgraded."""
