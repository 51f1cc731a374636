"""The pytest plugin, used from a project of its own in a temporary directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SUITE = """
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient


def roundtrip(servers, topic, values):
    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found = [consumer.poll(20).value() for _ in values]
    consumer.close()
    return found


def test_records_come_back(kafka_broker, kafka_topic):
    assert roundtrip(kafka_broker.bootstrap_servers, kafka_topic, [b"1", b"2"]) == [b"1", b"2"]


@pytest.mark.kafka_topic(partitions=3, configs={"cleanup.policy": "compact"})
def test_topic_is_as_the_marker_says(kafka_broker, kafka_topic):
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    topics = admin.list_topics(timeout=20).topics
    assert len(topics[kafka_topic].partitions) == 3
    assert not [name for name in topics if name.startswith("test_records")]  # it is deleted


def test_data_survives_kill_9_on_the_same_port(kafka_broker, kafka_topic):
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce(kafka_topic, b"before")
    assert producer.flush(20) == 0
    kafka_broker.kill()
    kafka_broker.start()
    servers = kafka_broker.bootstrap_servers
    assert roundtrip(servers, kafka_topic, [b"after"]) == [b"before"]
"""

CONFTEST = """
import pytest


@pytest.fixture(scope="session")
def kafka_settings():
    return {"message.max.bytes": "2000"}
"""

SETTINGS_SUITE = """
from confluent_kafka import KafkaError, Producer


def test_setting_is_obeyed(kafka_broker, kafka_topic):
    errors = []
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce(kafka_topic, b"x" * 5000, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    assert errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
"""

CLUSTER_SUITE = """
from confluent_kafka.admin import AdminClient


def test_cluster_has_three_brokers(kafka_cluster):
    admin = AdminClient({"bootstrap.servers": kafka_cluster.bootstrap_servers})
    found = sorted(admin.list_topics(timeout=20).brokers)
    assert found == sorted(kafka_cluster.brokers) == [1, 2, 3]
"""


def run_suite(project: Path, **files: str) -> subprocess.CompletedProcess[str]:
    """Run another project's tests, with the installed plugin and nothing of this source tree."""
    for name, text in files.items():
        (project / f"{name}.py").write_text(text)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=100
    )


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_suite_of_another_project_uses_a_real_broker(tmp_path: Path) -> None:
    result = run_suite(tmp_path, test_records=SUITE)
    assert "3 passed" in result.stdout, result.stdout + result.stderr


def test_project_overrides_settings_in_its_conftest(tmp_path: Path) -> None:
    result = run_suite(tmp_path, conftest=CONFTEST, test_settings=SETTINGS_SUITE)
    assert "1 passed" in result.stdout, result.stdout + result.stderr


@pytest.mark.zk
@pytest.mark.timeout(120)
def test_cluster_fixture_starts_three_brokers(tmp_path: Path) -> None:
    result = run_suite(tmp_path, test_cluster=CLUSTER_SUITE)
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_plugin_imports_nothing_of_kctl_before_a_fixture_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\n\ndef test_nothing():\n"
        "    loaded = {name for name in sys.modules if name.split('.')[0] in ('kctl', 'broker')}\n"
        "    assert loaded <= {'kctl', 'kctl.pytest_plugin', 'broker'}, loaded\n"
    )
    result = run_suite(tmp_path)
    assert "1 passed" in result.stdout, result.stdout + result.stderr
