"""All client libraries that the contract tests run with."""

from collections.abc import Iterator

from tests.clients.aio_kafka import AioKafka
from tests.clients.face import Client
from tests.clients.kafka_python import KafkaPython
from tests.clients.kcat import Kcat
from tests.clients.librdkafka import Librdkafka

CLIENTS: tuple[Client, ...] = (Librdkafka(), KafkaPython(), AioKafka(), Kcat())


def clients_that(*needs: str) -> Iterator[Client]:
    """The clients with all these abilities."""
    return (client for client in CLIENTS if client.abilities.issuperset(needs))
