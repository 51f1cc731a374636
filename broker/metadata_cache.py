"""What this broker knows of the cluster, for its answers to Metadata and DescribeCluster."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BrokerEndpoint:
    """A live broker, as clients of one listener reach it."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True)
class MetadataCache:
    """A snapshot of the cluster. Replaced whole when it changes, so a reader sees one state."""

    cluster_id: str
    controller_id: int
    brokers: dict[str, tuple[BrokerEndpoint, ...]]
    """Live brokers by listener name: a client sees the addresses of the listener it came by."""

    def brokers_of(self, listener_name: str) -> tuple[BrokerEndpoint, ...]:
        """The live brokers that have this listener."""
        return self.brokers.get(listener_name, ())
