"""Brokers and the cluster."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Broker:
    """One broker, as the cluster's metadata describes it."""

    id: int
    host: str
    port: int
    rack: str | None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Cluster:
    """The cluster; `controller_id` is None while there is no controller."""

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[Broker, ...]


@dataclass(frozen=True)
class BrokerFailure:
    """A broker that did not answer a query."""

    broker_id: int
    address: str | None
    """None if the broker is not in the cluster's metadata."""
    reason: str
    """`did not answer within 5 s`."""

    def __str__(self) -> str:
        address = f" ({self.address})" if self.address else ""
        return f"broker {self.broker_id}{address} {self.reason}"
