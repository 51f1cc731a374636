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
    """The cluster; `controller_id` is None while there is no controller.

    In KRaft mode the controller is the leader of the quorum, which need not be a broker.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[Broker, ...]
    is_kraft: bool = False
    is_controller_known: bool = True
    """False if the user may not describe the quorum: `controller_id` is None then."""
    controller_epoch: int | None = None
    """The epoch of the quorum's leader; None without KRaft: it is in ZooKeeper only."""


@dataclass(frozen=True)
class Controllership:
    """What znodes say about the controller; None for what they do not say."""

    controller_id: int | None
    epoch: int | None
    """Number of the controller, counted over the life of the cluster."""
    since_ms: int | None
    """When this controller was elected."""


@dataclass(frozen=True)
class BrokerFailure:
    """A broker that did not answer a query."""

    broker_id: int
    """-1 for a controller that is not known."""
    address: str | None
    """None if the broker is not in the cluster's metadata."""
    reason: str
    """`did not answer within 5 s`."""

    def __str__(self) -> str:
        if self.broker_id < 0:
            return "the cluster has no active controller"
        address = f" ({self.address})" if self.address else ""
        return f"broker {self.broker_id}{address} {self.reason}"
