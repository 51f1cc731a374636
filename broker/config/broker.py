"""BrokerConfig: all broker settings, and values that are computed from several of them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from broker.config.definitions import Settings, long
from broker.config.listeners import Listeners
from broker.config.settings.admin import AdminSettings
from broker.config.settings.general import GeneralSettings
from broker.config.settings.groups import GroupSettings
from broker.config.settings.kraft import KraftSettings
from broker.config.settings.log import LogSettings
from broker.config.settings.network import NetworkSettings
from broker.config.settings.quotas import QuotaSettings
from broker.config.settings.remote import RemoteLogSettings
from broker.config.settings.replication import ReplicationSettings
from broker.config.settings.sasl import SaslSettings
from broker.config.settings.security import SecuritySettings
from broker.config.settings.transactions import TransactionSettings
from broker.config.settings.zookeeper import ZooKeeperSettings
from broker.config.units import HOUR_MS, MINUTE_MS
from broker.config.validators import at_least
from broker.config.values import MAX_LONG, split_list

NO_LIMIT: Final = -1


class BrokerConfig(
    GeneralSettings,
    NetworkSettings,
    LogSettings,
    ReplicationSettings,
    GroupSettings,
    TransactionSettings,
    SecuritySettings,
    SaslSettings,
    ZooKeeperSettings,
    QuotaSettings,
    RemoteLogSettings,
    KraftSettings,
    AdminSettings,
):
    """The settings of a broker. Each attribute is Kafka's key with underscores for the dots.

    Where several keys set one value (`log.retention.ms`, `.minutes`, `.hours`), a property returns
    the effective one.
    """

    @classmethod
    def parse(
        cls, texts: Mapping[str, str], defaults: Mapping[str, Any] = MappingProxyType({})
    ) -> Self:
        """See Settings.parse. `node.id` and `broker.id` are the default of each other."""
        texts = dict(texts)
        for key, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
            if other in texts:
                texts.setdefault(key, texts[other])
        return super().parse(texts, defaults)

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """`log.dirs`, else `log.dir`; both are lists separated by commas."""
        text = self.log_dir if self.log_dirs is None else self.log_dirs
        return tuple(Path(part) for part in split_list(text) if part)

    @property
    def retention_ms(self) -> int:
        """How long records are kept: the finest unit that is set; -1: for ever."""
        if self.log_retention_ms is not None:
            ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            ms = self.log_retention_minutes * MINUTE_MS
        else:
            ms = self.log_retention_hours * HOUR_MS
        return max(ms, NO_LIMIT)

    @property
    def roll_ms(self) -> int:
        """The age at which a segment is rolled."""
        return self.log_roll_hours * HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def roll_jitter_ms(self) -> int:
        """The maximum jitter of the roll time."""
        if self.log_roll_jitter_ms is None:
            return self.log_roll_jitter_hours * HOUR_MS
        return self.log_roll_jitter_ms

    @property
    def flush_ms(self) -> int:
        """The maximum time before a partition is flushed to disk."""
        if self.log_flush_interval_ms is None:
            return self.log_flush_scheduler_interval_ms
        return self.log_flush_interval_ms

    @property
    def timestamp_before_max_ms(self) -> int:
        """How far a record timestamp may be before the broker time, by either setting."""
        newer = self.log_message_timestamp_before_max_ms
        return self.log_message_timestamp_difference_max_ms if newer == MAX_LONG else newer

    @property
    def timestamp_after_max_ms(self) -> int:
        """How far a record timestamp may be after the broker time, by either setting."""
        newer = self.log_message_timestamp_after_max_ms
        return self.log_message_timestamp_difference_max_ms if newer == MAX_LONG else newer

    @property
    def send_buffer_bytes(self) -> int:
        """`socket.send.buffer.bytes` if it is set, else -1: the system sizes the buffer.

        Kafka's default of 100 KB is shown to clients but not used: a response of 1 MB would need
        five writes, each of which waits until the client has read the previous one.
        """
        return self._if_set("socket.send.buffer.bytes", self.socket_send_buffer_bytes)

    @property
    def receive_buffer_bytes(self) -> int:
        """`socket.receive.buffer.bytes` if it is set, else -1: the system sizes the buffer.

        Kafka's default of 100 KB is shown to clients but not used: a client that sends more at once
        waits for every read of the broker. A buffer that the system grows saves a third of the CPU
        time of produce requests with large batches.
        """
        return self._if_set("socket.receive.buffer.bytes", self.socket_receive_buffer_bytes)

    def _if_set(self, key: str, value: int) -> int:
        return value if key in self.originals else -1

    @property
    def all_advertised_listeners(self) -> Listeners:
        """`advertised.listeners`, else `listeners`."""
        return self.advertised_listeners or self.listeners

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener for connections between brokers."""
        return (self.inter_broker_listener_name or self.security_inter_broker_protocol).upper()

    @property
    def control_plane_listener(self) -> str:
        """The name of the listener for requests of the controller."""
        return (self.control_plane_listener_name or self.inter_broker_listener).upper()

    def security_protocol(self, listener_name: str) -> str | None:
        """The security protocol of a listener; None if the map does not contain it."""
        return dict(self.listener_security_protocol_map).get(listener_name)

    @property
    def delegation_token_secret(self) -> str | None:
        """The key that signs delegation tokens; None disables them."""
        return self.delegation_token_secret_key or self.delegation_token_master_key

    def for_listener(self, listener_name: str) -> "BrokerConfig":
        """These settings, with those of `listener.name.<name>.` in place of the general ones."""
        return self._with_prefixed(f"listener.name.{listener_name.lower()}.")

    def for_mechanism(self, mechanism: str) -> "BrokerConfig":
        """The settings of a listener, with those of one SASL mechanism.

        `sasl.jaas.config` counts only with the name of the mechanism, as in Kafka.
        """
        texts = {key: text for key, text in self.originals.items() if key != "sasl.jaas.config"}
        return type(self).parse(texts)._with_prefixed(f"{mechanism.lower()}.")

    def _with_prefixed(self, prefix: str) -> "BrokerConfig":
        own = {
            key.removeprefix(prefix): text
            for key, text in self.originals.items()
            if key.startswith(prefix)
        }
        return type(self).parse({**self.originals, **own}) if own else self

    @property
    def zookeeper_connect_timeout_ms(self) -> int:
        """The timeout for connecting to ZooKeeper."""
        if self.zookeeper_connection_timeout_ms is None:
            return self.zookeeper_session_timeout_ms
        return self.zookeeper_connection_timeout_ms


class DynamicOnlySettings(Settings):
    """Broker settings that can only be set dynamically, not in the file."""

    leader_replication_throttled_rate: int = long(
        "leader.replication.throttled.rate", default=MAX_LONG, valid=at_least(0)
    )
    """The maximum rate in bytes per second of leaders for throttled replicas."""
    follower_replication_throttled_rate: int = long(
        "follower.replication.throttled.rate", default=MAX_LONG, valid=at_least(0)
    )
    """The maximum rate in bytes per second of throttled followers."""
    replica_alter_log_dirs_io_max_bytes_per_second: int = long(
        "replica.alter.log.dirs.io.max.bytes.per.second", default=MAX_LONG, valid=at_least(0)
    )
    """The maximum rate in bytes per second of moves between log directories."""
