"""Broker settings for replication and the controller."""

from broker.config.definitions import (
    CLUSTER_WIDE,
    HIGH,
    Settings,
    boolean,
    fixed,
    integer,
    long,
    no_effect,
    string,
)
from broker.config.units import KIB, MIB, MINUTE_MS
from broker.config.validators import at_least, kafka_version, one_of


class ReplicationSettings(Settings):
    """Follower fetches, leader election and the ISR."""

    default_replication_factor: int = integer("default.replication.factor", default=1)
    """The replication factor of topics that are created without one."""
    min_insync_replicas: int = integer(
        "min.insync.replicas", default=1, valid=at_least(1), importance=HIGH, mode=CLUSTER_WIDE
    )
    """The minimum number of in-sync replicas for a produce request with acks=all."""
    unclean_leader_election_enable: bool = boolean(
        "unclean.leader.election.enable", default=False, importance=HIGH, mode=CLUSTER_WIDE
    )
    """Whether an out-of-sync replica may become leader if no in-sync replica is alive."""
    unclean_leader_election_interval_ms: int = long(
        "unclean.leader.election.interval.ms",
        default=5 * MINUTE_MS,
        valid=at_least(1),
        internal=True,
        effect=no_effect("only KRaft uses it, which this broker does not have"),
    )
    """How often partitions are checked for unclean leader election."""
    replica_lag_time_max_ms: int = long("replica.lag.time.max.ms", default=30_000, importance=HIGH)
    """How long a follower may lag behind before it is removed from the ISR."""
    replica_socket_timeout_ms: int = integer(
        "replica.socket.timeout.ms", default=30_000, importance=HIGH
    )
    """How long a follower waits for a fetch response."""
    replica_socket_receive_buffer_bytes: int = integer(
        "replica.socket.receive.buffer.bytes",
        default=64 * KIB,
        importance=HIGH,
        effect=no_effect("the system sizes the buffer"),
    )
    """SO_RCVBUF of the sockets of followers; -1: the default of the system."""
    replica_fetch_max_bytes: int = integer(
        "replica.fetch.max.bytes", default=MIB, valid=at_least(0)
    )
    """The maximum bytes per partition of a follower fetch."""
    replica_fetch_wait_max_ms: int = integer(
        "replica.fetch.wait.max.ms", default=500, importance=HIGH
    )
    """The maximum wait of a follower fetch."""
    replica_fetch_min_bytes: int = integer("replica.fetch.min.bytes", default=1, importance=HIGH)
    """The minimum bytes of the response to a follower fetch."""
    replica_fetch_response_max_bytes: int = integer(
        "replica.fetch.response.max.bytes", default=10 * MIB, valid=at_least(0)
    )
    """The maximum bytes of the response to a follower fetch."""
    replica_fetch_backoff_ms: int = integer(
        "replica.fetch.backoff.ms", default=1000, valid=at_least(0)
    )
    """The wait of a follower after a failed fetch."""
    num_replica_fetchers: int = integer(
        "num.replica.fetchers", default=1, importance=HIGH, mode=CLUSTER_WIDE
    )
    """Fetchers per source broker."""
    num_replica_alter_log_dirs_threads: int | None = integer(
        "num.replica.alter.log.dirs.threads",
        default=None,
        importance=HIGH,
        effect=no_effect("replicas move one after the other"),
    )
    """Threads that move replicas between log directories; default: one per directory."""
    replica_high_watermark_checkpoint_interval_ms: int = long(
        "replica.high.watermark.checkpoint.interval.ms", default=5000, importance=HIGH
    )
    """How often the high watermark checkpoint is written."""
    replica_selector_class: str | None = string("replica.selector.class", default=None)
    """The class that selects the replica a consumer fetches from."""
    auto_leader_rebalance_enable: bool = boolean(
        "auto.leader.rebalance.enable", default=True, importance=HIGH
    )
    """Whether leadership is moved back to preferred leaders automatically."""
    leader_imbalance_per_broker_percentage: int = integer(
        "leader.imbalance.per.broker.percentage", default=10, importance=HIGH
    )
    """The percentage of partitions not led by their preferred leader that triggers a rebalance."""
    leader_imbalance_check_interval_seconds: int = long(
        "leader.imbalance.check.interval.seconds", default=300, valid=at_least(1), importance=HIGH
    )
    """How often the leader imbalance is checked."""
    controller_socket_timeout_ms: int = integer("controller.socket.timeout.ms", default=30_000)
    """How long the controller waits for the response of a broker."""
    controller_election: str = string(
        "controller.election", default="first", valid=one_of("first", "fair"), internal=True
    )
    """Which broker becomes controller: the first to try, or the one that waited longest. Not a
    setting of Kafka."""
    max_partitions_per_request: int = integer(
        "max.partitions.per.request", default=10_000, valid=at_least(1), internal=True
    )
    """The maximum number of partitions that one CreateTopics or CreatePartitions request may add;
    not a setting of Kafka, the default is the constant of KRaft's ReplicationControlManager."""
    inter_broker_protocol_version: str = string(
        "inter.broker.protocol.version",
        default="3.9-IV0",
        valid=kafka_version,
        effect=fixed("brokers always use the request versions of Kafka 3.9"),
    )
    """The protocol version between brokers; raised when all brokers are upgraded."""
