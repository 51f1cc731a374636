"""Our metrics beside those of Apache Kafka after the same requests, read by Kafka's own JmxTool."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.produce import ProduceRequest
from broker.records.legacy import build_messages
from tests.admin.conftest import admin_url, scrape
from tests.api.requests import create_topic, fetch_request, list_offset, produce_request
from tests.log.support import batch
from tests.support.broker import RunningBroker, running_broker
from tests.support.cluster import wait_until
from tests.support.processes import free_port
from tests.support.real_kafka import RealKafka, running_kafka
from tests.support.wire import WireClient

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

TOPIC = "load"
TRAFFIC = {
    "MessagesInPerSec": "messagesin_total",
    "BytesInPerSec": "bytesin_total",
    "BytesOutPerSec": "bytesout_total",
    "TotalProduceRequestsPerSec": "totalproducerequests_total",
    "TotalFetchRequestsPerSec": "totalfetchrequests_total",
    "FailedProduceRequestsPerSec": "failedproducerequests_total",
    "FailedFetchRequestsPerSec": "failedfetchrequests_total",
    "BytesRejectedPerSec": "bytesrejected_total",
}
OLD_TOPIC = "old"
CONVERSIONS = {
    "ProduceMessageConversionsPerSec": "producemessageconversions_total",
    "FetchMessageConversionsPerSec": "fetchmessageconversions_total",
}
"""Of a topic of its own: Kafka counts the bytes that consumers of old versions read before they are
converted, we count what is sent."""
REQUESTS = {("Produce", 9), ("Fetch", 11), ("ListOffsets", 5)}
REPLICAS = (
    *("ReassigningPartitions", "IsrShrinksPerSec", "IsrExpandsPerSec", "FailedIsrUpdatesPerSec"),
    *("UnderReplicatedPartitions", "UnderMinIsrPartitionCount", "AtMinIsrPartitionCount"),
    *("OfflineReplicaCount", "PartitionCount", "LeaderCount", "ProducerIdCount"),
)
ISR = ("UnderReplicated", "UnderMinIsr", "AtMinIsr", "ReplicasCount", "InSyncReplicasCount")


@pytest.fixture(scope="module")
def jmx_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, jmx_port: int) -> Iterator[RealKafka]:
    directory = tmp_path_factory.mktemp("jmx")
    with running_kafka(directory, settings={"jmx.port": jmx_port}) as cluster:
        yield cluster


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker(tmp_path, **{"admin.listeners": "http://127.0.0.1:0"}) as broker:
        yield broker


def send_load(address: str) -> None:
    """Requests of fixed bytes: 20 batches of 3 records, reads, failures, offsets."""
    with WireClient(address) as wire:
        # The timestamps are so old that retention would delete the records after 30 seconds.
        create_topic(wire, TOPIC, min_insync_replicas="1", retention_ms="-1")
        records = batch("a", "b", "c", timestamp=1_700_000_000_000)
        # In a version that is not counted below.
        wait_until(lambda: not list_offset(wire, TOPIC, -1, version=6).error_code, "a leader")
        for _ in range(20):
            assert _error(wire, produce_request(TOPIC, records)) == 0
        assert _error(wire, produce_request(TOPIC, records, acks=5)) != 0
        for offset in (0, 30, 59):
            answer = wire.ask(fetch_request(TOPIC, offset), 11)
            assert answer.responses[0].partitions[0].error_code == 0
        wire.ask(fetch_request(TOPIC, 1000), 11)  # out of range
        assert _error(wire, produce_request(TOPIC, batch("x" * 2_000_000))) != 0  # too large
        asked = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
        for _ in range(4):
            topics = [ListOffsetsTopic(name=TOPIC, partitions=asked)]
            request = ListOffsetsRequest(replica_id=-1, topics=topics)
            assert wire.ask(request, 5).topics[0].partitions[0].offset == 60
        _send_old_formats(wire)


def _send_old_formats(wire: WireClient) -> None:
    """Two messages of format 1, written and read by clients that know nothing newer."""
    create_topic(wire, OLD_TOPIC, min_insync_replicas="1", retention_ms="-1")
    wait_until(lambda: not list_offset(wire, OLD_TOPIC, -1, version=6).error_code, "a leader")
    rows = [(number, 1_700_000_000_000, b"k", b"old", ()) for number in range(2)]
    old = build_messages(rows, magic=1)
    answered = wire.ask(produce_request(OLD_TOPIC, old), 2)
    assert answered.responses[0].partition_responses[0].error_code == 0
    found = wire.ask(fetch_request(OLD_TOPIC, 0), 3).responses[0].partitions[0]
    assert found.error_code == 0 and found.records


def _error(wire: WireClient, request: ProduceRequest) -> int:
    return wire.ask(request, 9).responses[0].partition_responses[0].error_code


def jmx(kafka: RealKafka, port: int, *names: str) -> dict[str, float]:
    """Attributes Count and Value of MBeans, by object name."""
    url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"
    words = [word for name in names for word in ("--object-name", name)]
    options = ("--jmx-url", url, "--one-time", "--report-format", "properties")
    result = kafka.tool("org.apache.kafka.tools.JmxTool", *options, *words)
    found = re.findall(r"^(kafka\..+):(?:Count|Value)=([\d.E]+)$", result.stdout, re.MULTILINE)
    assert found, result.stdout + result.stderr
    return {name: float(value) for name, value in found}


def _exposed(name: str) -> str:
    """What the rules of the JMX exporter make of a name."""
    return re.sub("persec$", "_total", name.lower())


def test_same_requests_give_the_same_numbers_as_kafkas_jmx(
    kafka: RealKafka, jmx_port: int, ours: RunningBroker
) -> None:
    send_load(kafka.bootstrap_servers)
    send_load(ours.bootstrap_servers)
    traffic = {n: f"kafka.server:type=BrokerTopicMetrics,name={n},topic={TOPIC}" for n in TRAFFIC}
    requests = {
        (api, version): "kafka.network:type=RequestMetrics,name=RequestsPerSec,"
        f"request={api},version={version}"
        for api, version in REQUESTS
    }
    replicas = {n: f"kafka.server:type=ReplicaManager,name={n}" for n in REPLICAS}
    isr = {n: f"kafka.cluster:type=Partition,name={n},topic={TOPIC},partition=0" for n in ISR}
    old = {
        n: f"kafka.server:type=BrokerTopicMetrics,name={n},topic={OLD_TOPIC}" for n in CONVERSIONS
    }
    names = [
        *traffic.values(),
        *old.values(),
        *requests.values(),
        *replicas.values(),
        *isr.values(),
    ]
    theirs = jmx(kafka, jmx_port, *names)
    samples = scrape(admin_url(ours))

    def own(name: str, **labels: str) -> float:
        return samples[name, frozenset(labels.items())]

    # Kafka registers the meter of a topic when it is first marked.
    wanted = {name: theirs.get(mbean, 0.0) for name, mbean in (*traffic.items(), *replicas.items())}
    found = {
        name: own(f"kafka_server_brokertopicmetrics_{our_name}", topic=TOPIC)
        for name, our_name in TRAFFIC.items()
    } | {name: own(f"kafka_server_replicamanager_{_exposed(name)}") for name in REPLICAS}
    assert found == wanted
    converted = {
        name: own(f"kafka_server_brokertopicmetrics_{our_name}", topic=OLD_TOPIC)
        for name, our_name in CONVERSIONS.items()
    }
    assert converted == {name: theirs[mbean] for name, mbean in old.items()}
    counts = {
        (api, version): own(
            "kafka_network_requestmetrics_requests_total", request=api, version=str(version)
        )
        for api, version in REQUESTS
    }
    assert counts == {key: theirs[mbean] for key, mbean in requests.items()}
    states = {
        n: own(f"kafka_cluster_partition_{n.lower()}", topic=TOPIC, partition="0") for n in ISR
    }
    assert states == {name: theirs[mbean] for name, mbean in isr.items()}
