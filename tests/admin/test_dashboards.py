"""Existing dashboards for Kafka work: every metric they read that has a meaning here is served.

The names are those in the queries of strimzi-kafka.json (strimzi-kafka-operator) and of
kafka-cluster, kafka-topics, kafka-quotas and kafka-transaction-coordinator.json (Confluent's
jmx-monitoring-stacks).
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from tests.admin.conftest import admin_url, scrape
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import run_kctl

STRIMZI = [
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_replicascount",
    "kafka_cluster_partition_underminisr",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_log_log_size",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_socket_server_metrics_connection_count",
    "process_open_fds",
]

CONFLUENT = [
    "kafka_cluster_partition_underminisr",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "kafka_controller_kafkacontroller_globaltopiccount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsdead",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
    "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
    "kafka_log_log_logendoffset",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_size",
    "kafka_network_requestmetrics_errorspersec",
    "kafka_network_requestmetrics_localtimems",
    "kafka_network_requestmetrics_remotetimems",
    "kafka_network_requestmetrics_requestqueuetimems",
    "kafka_network_requestmetrics_requestspersec",
    "kafka_network_requestmetrics_responsesendtimems",
    "kafka_network_requestmetrics_totaltimems",
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    "kafka_server_brokertopicmetrics_bytesinpersec",
    "kafka_server_brokertopicmetrics_bytesoutpersec",
    "kafka_server_brokertopicmetrics_fetchmessageconversionspersec",
    "kafka_server_brokertopicmetrics_messagesinpersec",
    "kafka_server_brokertopicmetrics_producemessageconversionspersec",
    "kafka_server_brokertopicmetrics_totalfetchrequestspersec",
    "kafka_server_brokertopicmetrics_totalproducerequestspersec",
    "kafka_server_fetch_byte_rate",
    "kafka_server_fetch_throttle_time",
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictionspersec",
    "kafka_server_fetchsessioncache_numincrementalfetchsessions",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate",
    "kafka_server_kafkaserver_brokerstate",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "kafka_server_produce_byte_rate",
    "kafka_server_produce_throttle_time",
    "kafka_server_replicafetchermanager_maxlag",
    "kafka_server_replicamanager_isrexpandspersec",
    "kafka_server_replicamanager_isrshrinkspersec",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_request_request_time",
    "kafka_server_request_throttle_time",
    "kafka_server_sessionexpirelistener_zookeeperauthfailurespersec",
    "kafka_server_sessionexpirelistener_zookeeperdisconnectspersec",
    "kafka_server_sessionexpirelistener_zookeeperexpirespersec",
    "kafka_server_sessionexpirelistener_zookeepersyncconnectspersec",
    "kafka_server_socketservermetrics_connection_close_rate",
    "kafka_server_socketservermetrics_connection_count",
    "kafka_server_socketservermetrics_connection_creation_rate",
    "kafka_server_socketservermetrics_connections",
    "kafka_server_transaction_coordinator_metrics_partition_load_time_avg",
    "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
    "process_cpu_seconds_total",
]
"""Left out, because there is no such thing here: queues between threads (requestqueuesize,
responsequeuesize, responsequeuetimems, acceptorblockedpercent), tiered storage (tier*), KRaft's
stray partitions, jvm_*, Confluent's own transaction metrics, minfetchrate, the rate of deprecated
requests by client software. ZooKeeper's latency is in a test with a real ZooKeeper. Last compared
with the queries of the dashboards in November 2026: these are all others."""


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with both dialects, on which a client with quotas produced and consumed."""
    settings = {"admin.listeners": "http://127.0.0.1:0", "metrics.dialect": "both"}
    directory = tmp_path_factory.mktemp("dashboards")
    with running_broker(directory, **settings) as broker:
        at = ("-b", broker.bootstrap_servers)
        create = ("topics", "create", "t", "-p", "1", "--config", "flush.messages=1")
        assert run_kctl(*create, *at).exit_code == 0
        quotas = ("producer_byte_rate=1000000", "consumer_byte_rate=1000000")
        percentage = "request_percentage=200"
        result = run_kctl("quotas", "set", "--client", "app", *quotas, percentage, "-y", *at)
        assert result.exit_code == 0, result.stderr
        yield broker


@pytest.fixture(scope="module")
def clients(used: RunningBroker) -> Iterator[None]:
    """Open clients of the id `app`, which have sent and read a record."""
    config = {"bootstrap.servers": used.bootstrap_servers, "client.id": "app"}
    producer = Producer(config)
    producer.produce("t", b"x" * 1000)
    assert producer.flush(30) == 0
    consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t", "missing"])
    while (message := consumer.poll(30)) is not None and message.error():
        pass  # the missing topic
    yield
    consumer.close()


@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize("names", [STRIMZI, CONFLUENT], ids=["strimzi", "confluent"])
def test_every_metric_of_the_dashboards_is_served(used: RunningBroker, names: list[str]) -> None:
    served = {name for name, _ in scrape(admin_url(used))}
    assert [name for name in names if name not in served] == []


@pytest.mark.usefixtures("clients")
def test_use_of_quotas_is_served_for_the_clients_that_have_one(used: RunningBroker) -> None:
    samples = scrape(admin_url(used))
    where = frozenset({"resource": "Produce", "user": "", "clientId": "app"}.items())
    # 1000 bytes and a few of headers, over ten windows of a second.
    assert 90 < samples["kafka_server_quota_byte_rate", where] < 200
    assert samples["kafka_server_quota_throttle_time", where] == 0
    confluent = frozenset({"user": "", "client_id": "app"}.items())
    assert samples["kafka_server_request_request_time", confluent] > 0


@pytest.mark.usefixtures("clients")
def test_connections_are_counted_by_client_software(used: RunningBroker) -> None:
    found = {
        dict(labels)["clientSoftwareName"]: count
        for (name, labels), count in scrape(admin_url(used)).items()
        if name == "kafka_server_socket_server_metrics_connections_software"
    }
    assert found["confluent-kafka-python"] >= 2, found


@pytest.mark.usefixtures("clients")
def test_flushes_are_counted_and_timed(used: RunningBroker) -> None:
    samples = scrape(admin_url(used))
    name = "kafka_log_logflushstats_logflushrateandtimems"
    assert samples[f"{name}_count", frozenset()] >= 1
    assert samples[name, frozenset({("quantile", "0.99")})] > 0
