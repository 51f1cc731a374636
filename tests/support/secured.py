"""Settings of secured brokers and of the clients that connect to them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer

from tests.support.certificates import Authority

_MODULES = {"PLAIN": "plain.PlainLoginModule", "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule"}


def jaas(mechanism: str, **options: str) -> str:
    """A login module: `jaas("PLAIN", username="admin", password="secret")`."""
    module = _MODULES.get(mechanism, "scram.ScramLoginModule")
    words = "".join(f' {name}="{value}"' for name, value in options.items())
    return f"org.apache.kafka.common.security.{module} required{words};"


@dataclass(frozen=True)
class Certificates:
    """PEM files of an authority and of a broker at 127.0.0.1 and localhost."""

    directory: Path
    authority: Authority

    @classmethod
    def make(cls, directory: Path) -> "Certificates":
        """Write ca.pem and broker.pem."""
        made = cls(directory, Authority())
        made.trusted.write_text(made.authority.certificate)
        made.own.write_text(made.authority.certificate_for("localhost", "127.0.0.1").pem)
        return made

    @property
    def trusted(self) -> Path:
        """The authority's certificate."""
        return self.directory / "ca.pem"

    @property
    def own(self) -> Path:
        """The broker's certificate and key."""
        return self.directory / "broker.pem"

    def client(self, name: str) -> Path:
        """A file with a client's certificate and key."""
        path = self.directory / f"{name}.pem"
        path.write_text(self.authority.certificate_for(name).pem)
        return path

    def settings(self) -> dict[str, object]:
        """The ssl settings of a broker."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.own,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.trusted,
        }


def librdkafka(
    bootstrap_servers: str,
    protocol: str,
    certificates: Certificates | None = None,
    **more: str,
) -> dict[str, Any]:
    """Settings of confluent-kafka; `sasl_username="alice"` is sasl.username."""
    found: dict[str, Any] = {
        "bootstrap.servers": bootstrap_servers,
        "security.protocol": protocol.lower(),
        "log_level": 0,
    }
    if certificates is not None:
        found["ssl.ca.location"] = str(certificates.trusted)
    return found | {key.replace("_", "."): value for key, value in more.items()}


def login(mechanism: str, username: str, password: str) -> dict[str, str]:
    """The sasl settings of confluent-kafka, for `librdkafka`."""
    return {"sasl_mechanisms": mechanism, "sasl_username": username, "sasl_password": password}


def round_trip(settings: Mapping[str, Any], topic: str, num: int = 100) -> int:
    """Produce records to an empty topic, and count how many a new group reads."""
    produce(settings, topic, num)
    group = f"{topic}-{time.monotonic_ns()}"
    return count_records(settings, topic, group, num)


def produce(settings: Mapping[str, Any], topic: str, num: int) -> None:
    """Produce records, with acks=all; all of them are acknowledged."""
    producer = Producer(dict(settings) | {"enable.idempotence": True})
    for number in range(num):
        producer.produce(topic, str(number))
    assert producer.flush(40) == 0


def count_records(settings: Mapping[str, Any], topic: str, group: str, num: int) -> int:
    """How many records a group reads from the beginning, up to `num`."""
    consumer = Consumer(dict(settings) | {"group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    count, deadline = 0, time.monotonic() + 40
    while count < num and time.monotonic() < deadline:
        count += sum(1 for message in consumer.consume(1000, 0.5) if not message.error())
    consumer.close()
    return count
