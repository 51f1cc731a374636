"""Every client that the contracts run with: add one, and all of them hold for it."""

from collections.abc import Iterator

from tests.clients.aio_kafka import AioKafka
from tests.clients.face import Client
from tests.clients.kafka_python import KafkaPython
from tests.clients.kcat import Kcat
from tests.clients.librdkafka import Librdkafka

CLIENTS: tuple[Client, ...] = (Librdkafka(), KafkaPython(), AioKafka(), Kcat())


def clients_that(*needs: str) -> Iterator[Client]:
    """Those with all the abilities."""
    return (client for client in CLIENTS if client.abilities.issuperset(needs))
