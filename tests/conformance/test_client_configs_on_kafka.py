"""Quotas and SCRAM credentials: the znodes are those of Apache Kafka, byte for byte."""

from pathlib import Path

import pytest
from kazoo.client import KazooClient

from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from broker.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from tests.conformance import admin_security
from tests.conformance.exchange import Exchange, Talk, talk
from tests.support.broker import running_broker
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

NUM_ALTERATIONS = 16
"""The number of requests before the conversation starts to remove what it has set."""


def znodes(client: KazooClient, root: str, path: str) -> dict[str, bytes | None]:
    data, _ = client.get(root + path)
    found = {path: data}
    for name in client.get_children(root + path):
        found |= znodes(client, root, f"{path}/{name}")
    return found


def changes(client: KazooClient, root: str) -> list[bytes]:
    parent = f"{root}/config/changes"
    names = sorted(client.get_children(parent), key=lambda name: name[-10:])
    return [client.get(f"{parent}/{name}")[0] for name in names]


def quotas_set_and_removed(prefix: str, version: int) -> Talk:
    """All of one conversation, then the first part of it again: what is set stays."""
    yield from admin_security.quotas_that_change(prefix, version)
    again = admin_security.quotas_that_change(prefix, version)
    for _ in range(NUM_ALTERATIONS):
        yield next(again)
    yield from admin_security.refused_quotas(prefix, version)


def credentials_set_and_removed(prefix: str, version: int) -> Talk:
    yield from admin_security.credentials_that_change(prefix, version)
    yield next(admin_security.credentials_that_change(prefix, version))


EXCHANGES = [
    Exchange(AlterClientQuotasRequest, quotas_set_and_removed),
    Exchange(AlterUserScramCredentialsRequest, credentials_set_and_removed),
]


def converse(address: str) -> None:
    for exchange in EXCHANGES:
        talk(exchange, exchange.api.versions[1], address)


def test_znodes_are_those_of_kafka(own_kafka: RealKafka, tmp_path: Path) -> None:
    chroot = "/ours"
    client = KazooClient(own_kafka.zookeeper)
    client.start()
    try:
        before = len(changes(client, ""))
        converse(own_kafka.brokers[0])
        connect = f"{own_kafka.zookeeper}{chroot}"
        with running_broker(tmp_path, broker_id=1, zookeeper_connect=connect) as ours:
            converse(ours.bootstrap_servers)
        for kind in ("users", "clients", "ips"):
            path = f"/config/{kind}"
            assert znodes(client, chroot, path) == znodes(client, "", path)
        assert changes(client, chroot) == changes(client, "")[before:]
    finally:
        client.stop()
        client.close()
