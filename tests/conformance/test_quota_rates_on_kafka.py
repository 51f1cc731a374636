"""A throttled consumer reaches its rate on our broker as it does on Apache Kafka."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from tests.api.requests import create_topic, fetch_request, produce_request
from tests.log.support import batch
from tests.support.broker import running_broker
from tests.support.real_kafka import RealKafka
from tests.support.wire import WireClient, read_response, request_frame

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

RATE = 50_000
SECONDS = 30
"""Nearly three times the eleven windows after which a burst is forgotten."""
PAUSE_S = 3
FETCHED_BYTES = 9_300
CLIENT_ID = "throttled"
RECORDS = batch(b"x" * 3_000)


def prepare(address: str) -> None:
    """Store more than the client can read, and set its quota."""
    with WireClient(address) as admin:
        create_topic(admin, "stored")
        request = produce_request("stored", RECORDS)
        for _ in range(2 * RATE * SECONDS // len(RECORDS)):
            (topic,) = admin.ask(request, 9).responses
            assert topic.partition_responses[0].error_code == 0
        quota = RequestEntryData(
            entity=[EntityData(entity_type="client-id", entity_name=CLIENT_ID)],
            ops=[OpData(key="consumer_byte_rate", value=RATE)],
        )
        (result,) = admin.ask(AlterClientQuotasRequest(entries=[quota]), 1).entries
        assert result.error_code == 0


def fetched(address: str) -> list[tuple[float, int]]:
    """Times and sizes of what a client gets that fetches as fast as it is allowed to."""
    offset, received, end_s = 0, [], time.monotonic() + SECONDS
    with WireClient(address) as client:
        while time.monotonic() < end_s:
            request = fetch_request(
                "stored", offset, max_bytes=FETCHED_BYTES, partition_max_bytes=FETCHED_BYTES
            )
            client.send(request_frame(request, 11, CLIENT_ID))
            frame = client.receive()
            assert frame is not None
            response: Any = read_response(frame, request.api_key, 11)
            if not response.throttle_time_ms:
                records = response.responses[0].partitions[0].records
                offset += len(records) // len(RECORDS)
                received.append((time.monotonic(), len(records)))
    return received


def rate_of(received: list[tuple[float, int]]) -> float:
    """Bytes per second from the first bytes to the end of the last long pause.

    A client gets ten seconds' worth at once and then waits: the rate of any other time says little.
    """
    times = [at for at, _ in received]
    later = max(
        number for number in range(1, len(times)) if times[number] - times[number - 1] >= PAUSE_S
    )
    return sum(size for _, size in received[:later]) / (times[later] - times[0])


def test_throttled_consumer_reaches_its_rate_as_with_kafka(
    own_kafka: RealKafka, tmp_path: Path
) -> None:
    with running_broker(tmp_path) as ours, ThreadPoolExecutor() as threads:
        addresses = (ours.bootstrap_servers, own_kafka.brokers[0])
        list(threads.map(prepare, addresses))
        time.sleep(2)  # brokers apply the quota a moment later; neither says when
        rate, by_kafka = map(rate_of, threads.map(fetched, addresses))
    assert rate == pytest.approx(RATE, rel=0.1)
    assert by_kafka == pytest.approx(RATE, rel=0.25)  # with a slow machine its bursts last longer
