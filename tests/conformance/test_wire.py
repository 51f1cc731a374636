"""Our broker on the wire: malformed bytes are handled as in Kafka; common clients connect."""

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient

from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.metadata import MetadataRequest
from tests.conformance.hostile import CLOSED, HOSTILE, Hostile, answer_to
from tests.support.broker import RunningBroker, running_broker
from tests.support.wire import WireClient, request_frame

CLOSING = re.compile(r"closing connection peer=\S+ reason=.+")


def resident_kb(broker: RunningBroker) -> int:
    status = Path(f"/proc/{broker.server.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0])


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_hostile_bytes_are_answered_as_kafka_answers_them(
    shared_broker: RunningBroker, hostile: Hostile
) -> None:
    before = len(CLOSING.findall(log_of(shared_broker)))
    assert answer_to(hostile, shared_broker.bootstrap_servers) == hostile.answer
    with WireClient(shared_broker.bootstrap_servers) as wire:
        assert wire.ask(MetadataRequest(topics=[]), 12).cluster_id
    closed = len(CLOSING.findall(log_of(shared_broker))) - before
    assert closed == (hostile.answer == CLOSED)


def log_of(broker: RunningBroker) -> str:
    return broker.server.log_file.read_text()


def test_announced_gigabytes_cost_no_memory(tmp_path: Path) -> None:
    limit = 2**31 - 1
    with running_broker(tmp_path, socket_request_max_bytes=limit) as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            wire.ask(MetadataRequest(topics=[]), 12)
        before = resident_kb(broker)
        wires = [WireClient(broker.bootstrap_servers) for _ in range(20)]
        for wire in wires:
            wire.socket.sendall(limit.to_bytes(4, "big") + bytes(10_000))
        with WireClient(broker.bootstrap_servers) as wire:
            wire.ask(MetadataRequest(topics=[]), 12)
        assert resident_kb(broker) - before < 10_000
        for wire in wires:
            wire.socket.close()


def test_clients_that_do_not_read_cost_little_memory_and_delay_no_other_client(
    shared_broker: RunningBroker,
) -> None:
    request = ApiVersionsRequest(client_software_name="slow", client_software_version="1")
    with WireClient(shared_broker.bootstrap_servers) as wire:
        wire.ask(request, 3)
    frame = request_frame(request, 3)
    many = (len(frame).to_bytes(4, "big") + frame) * 1000
    before = resident_kb(shared_broker)
    slow = [WireClient(shared_broker.bootstrap_servers) for _ in range(5)]
    for wire in slow:
        wire.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):  # in the end the broker stops reading requests
            while True:
                wire.socket.sendall(many)
    with WireClient(shared_broker.bootstrap_servers) as wire:
        wire.socket.settimeout(2)
        assert wire.ask(MetadataRequest(topics=[]), 12).cluster_id
    assert resident_kb(shared_broker) - before < 10_000
    for wire in slow:
        wire.socket.close()


def test_confluent_kafka_lists_the_cluster(shared_broker: RunningBroker) -> None:
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap_servers})
    listed = admin.list_topics(timeout=10)
    (broker,) = listed.brokers.values()
    assert f"{broker.host}:{broker.port}" == shared_broker.bootstrap_servers
    assert listed.controller_id == broker.id
    described = admin.describe_cluster().result(timeout=10)
    assert (described.cluster_id, described.controller.id) == (listed.cluster_id, broker.id)


@pytest.mark.filterwarnings("ignore:.* is deprecated")  # by kafka-python, as it is imported
def test_kafka_python_lists_the_cluster(shared_broker: RunningBroker) -> None:
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=shared_broker.bootstrap_servers)
    try:
        described = admin.describe_cluster()
    finally:
        admin.close()
    (broker,) = described["brokers"]
    assert shared_broker.bootstrap_servers.endswith(f":{broker['port']}")
    assert described["controller_id"] in (broker.get("node_id"), broker.get("broker_id"))


def test_aiokafka_lists_the_cluster(shared_broker: RunningBroker) -> None:
    async def describe() -> dict[str, Any]:
        admin = AIOKafkaAdminClient(bootstrap_servers=shared_broker.bootstrap_servers)
        await admin.start()
        try:
            described: dict[str, Any] = await admin.describe_cluster()
            return described
        finally:
            await admin.close()

    described = asyncio.run(describe())
    assert described["cluster_id"]
    assert len(described["brokers"]) == 1


def test_broker_ends_in_order_with_clients_connected_and_one_that_waits(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path, max_connections=1) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        wire.ask(MetadataRequest(topics=[]), 12)
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port))) as waiting:
            assert broker.server.stop() == 0
            assert wire.receive() is None
            assert waiting.recv(1) == b""
    assert "Traceback" not in log_of(broker)
