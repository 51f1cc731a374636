"""Names of metrics in the dialects that dashboards read.

A metric is declared once, by its MBean as Kafka documents it. `jmx` is what the rule file of the
JMX exporter (and Strimzi's) makes of that MBean, `confluent` what Confluent's rule file makes.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from broker.admin.exposition import Family, Kind, Sample


class Dialect(StrEnum):
    """The rule file that metric names follow."""

    JMX = "jmx"
    CONFLUENT = "confluent"
    BOTH = "both"


_LABELS_OF_CONFLUENT: Final = {
    "networkProcessor": "network_processor",
    "clientSoftwareName": "client_software_name",
    "clientSoftwareVersion": "client_software_version",
}


@dataclass
class Metric:
    """One metric of Kafka with its present values.

    Field `mbean`: domain, type and name in lower case: kafka.server:type=ReplicaManager,
    name=LeaderCount is `server_replicamanager_leadercount`. Meters (`…PerSec`) are counters, from
    which Prometheus computes rates; their names are given without `PerSec`.
    """

    mbean: str
    help: str
    kind: Kind = Kind.GAUGE
    labels: tuple[str, ...] = ()
    samples: list[Sample] = field(default_factory=list)
    confluent: str | None = None
    """The name after `kafka_` in Confluent's dialect, if it does not follow from `mbean`."""
    jmx: str | None = None
    """The same in the JMX exporter's dialect."""

    def add(self, value: float, *label_values: str) -> "Metric":
        """Add one series."""
        self.samples.append((label_values, value))
        return self

    def families(self, dialect: Dialect) -> list[Family]:
        """One family per name that the dialect gives to the metric."""
        jmx = confluent = f"kafka_{self.mbean}"
        if self.kind is Kind.COUNTER:
            jmx, confluent = f"{jmx}_total", f"{confluent}persec"
        if self.jmx is not None:
            jmx = f"kafka_{self.jmx}"
        if self.confluent is not None:
            confluent = f"kafka_{self.confluent}"
        lowered = tuple(_LABELS_OF_CONFLUENT.get(label, label.lower()) for label in self.labels)
        families = []
        if dialect is not Dialect.CONFLUENT:
            families.append(Family(jmx, self.help, self.kind, self.labels, self.samples))
        if dialect is not Dialect.JMX and (
            not families or (jmx, self.labels) != (confluent, lowered)
        ):
            families.append(Family(confluent, self.help, self.kind, lowered, self.samples))
        return families


def counter(mbean: str, help: str, *labels: str) -> Metric:  # noqa: A002  # Prometheus' own word
    """A metric that only grows."""
    return Metric(mbean, help, Kind.COUNTER, labels)


def gauge(mbean: str, help: str, *labels: str) -> Metric:  # noqa: A002
    """A metric that goes up and down."""
    return Metric(mbean, help, Kind.GAUGE, labels)
