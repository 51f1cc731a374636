"""kctl compared with Kafka's own tools on the same Apache cluster."""

import pytest

from tests.support.kctl import Kctl
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


def test_api_versions_output_equals_kafka_broker_api_versions(
    kctl: Kctl, real_kafka: RealKafka
) -> None:
    servers = ["--bootstrap-server", real_kafka.bootstrap_servers]
    theirs = real_kafka.tool("kafka.admin.BrokerApiVersionsCommand", *servers)
    assert theirs.returncode == 0
    assert kctl("api-versions", "--format", "kafka", *servers).output == theirs.stdout


def test_cluster_id_output_equals_kafka_cluster(kctl: Kctl, real_kafka: RealKafka) -> None:
    servers = ["--bootstrap-server", real_kafka.bootstrap_servers]
    theirs = real_kafka.tool("org.apache.kafka.tools.ClusterTool", "cluster-id", *servers)
    assert kctl("cluster", "id", "--format", "kafka", *servers).output == theirs.stdout


def test_brokers_of_a_real_cluster_are_listed_with_their_controller(
    kctl: Kctl, real_kafka: RealKafka
) -> None:
    (address,) = real_kafka.brokers
    host, port = address.split(":")
    rows = kctl("brokers", "list", "-b", address, "-o", "json").json
    assert rows == [{"id": 1, "host": host, "port": int(port), "rack": None, "controller": True}]
