"""monitor, health and top on Apache Kafka, beside its own tools."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from tests.support.kctl import run_kctl
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPIC, GROUP = "monitored", "monitored-group"


@pytest.fixture(scope="module")
def server(own_kafka: RealKafka) -> str:
    """A Kafka with a topic of 40 records, of which a group has committed 5 and 20."""
    address = own_kafka.bootstrap_servers
    assert run_kctl("topics", "create", TOPIC, "-p", "2", "-b", address).exit_code == 0
    producer = Producer({"bootstrap.servers": address})
    for number in range(40):
        producer.produce(TOPIC, str(number), partition=number % 2)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP})
    offsets = [TopicPartition(TOPIC, 0, 5), TopicPartition(TOPIC, 1, 20)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    return address


def test_lag_is_that_of_kafka_consumer_groups(server: str, own_kafka: RealKafka) -> None:
    words = ("--describe", "--group", GROUP)
    theirs = own_kafka.tool(GROUPS, "--bootstrap-server", server, *words)
    rows = [line.split() for line in theirs.stdout.splitlines() if line.startswith(GROUP)]
    lags = {row[2]: float(row[5]) for row in rows}
    assert lags == {"0": 15, "1": 0}
    result = run_kctl("monitor", "run", "--once", "--probe", "-b", server)
    assert result.exit_code == 0, result.stderr
    found = {
        (sample.name, sample.labels.get("partition", sample.labels.get("partition_id"))): value
        for family in text_string_to_metric_families(result.output)
        for sample in family.samples
        if sample.labels.get("consumergroup", GROUP) == GROUP
        for value in [sample.value]
    }
    assert {part: found["kafka_consumergroup_lag", part] for part in lags} == lags
    assert found["kminion_end_to_end_messages_received_total", "0"] == 1
    assert found["kminion_end_to_end_messages_lost_total", "0"] == 0


def test_health_waits_for_a_healthy_cluster(server: str) -> None:
    healthy = run_kctl("health", "--wait", "60", "--critical", "-b", server)
    assert (healthy.exit_code, healthy.stderr) == (0, "no problems found\n")


def test_top_shows_every_view_once(server: str) -> None:
    for view in ("brokers", "topics", "partitions", "groups", "reassignments"):
        shown = run_kctl("top", view, "--once", "-o", "json", "-b", server)
        assert shown.exit_code == 0, shown.stderr
        assert shown.json or view == "reassignments", view
