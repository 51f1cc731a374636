"""The numbers on the admin port, compared with what other projects' clients did."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.errors import ErrorCode
from broker.protocol.messages.produce import ProduceRequest
from broker.records.legacy import build_messages
from tests.admin.conftest import Samples, admin_url, get, scrape, value
from tests.api.requests import fetch_request, produce_request
from tests.log.support import batch
from tests.support.broker import RunningBroker, running_broker
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.wire import WireClient, request_frame
from tests.support.zookeeper import ZooKeeper

TRAFFIC = "kafka_server_brokertopicmetrics"
RECORDS = 500


def create(broker: RunningBroker, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(30)


def produce(broker: RunningBroker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50})
    for number in range(count):
        producer.produce(topic, f"value {number}")
    assert producer.flush(30) == 0


def consume(broker: RunningBroker, topic: str, count: int, group: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    seen = 0
    while seen < count:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        seen += 1
    consumer.close()


def test_traffic_of_a_topic_is_what_clients_sent_and_read(
    monitored: RunningBroker, scraped: Callable[[], Samples]
) -> None:
    create(monitored, "traffic", 3)
    produce(monitored, "traffic", RECORDS)
    consume(monitored, "traffic", RECORDS, "traffic-group")
    samples = scraped()
    on_disk = sum(path.stat().st_size for path in monitored.log_dir.glob("traffic-*/*.log"))
    assert value(samples, f"{TRAFFIC}_messagesin_total", topic="traffic") == RECORDS
    assert value(samples, f"{TRAFFIC}_bytesin_total", topic="traffic") == on_disk
    # librdkafka may fetch a batch again after the group has rebalanced.
    assert value(samples, f"{TRAFFIC}_bytesout_total", topic="traffic") >= on_disk
    sizes = [value(samples, "kafka_log_log_size", topic="traffic", partition=p) for p in "012"]
    ends = [
        value(samples, "kafka_log_log_logendoffset", topic="traffic", partition=p) for p in "012"
    ]
    assert (sum(sizes), sum(ends)) == (on_disk, RECORDS)
    assert value(samples, f"{TRAFFIC}_messagesin_total") >= RECORDS
    assert value(samples, "kafka_coordinator_group_groupmetadatamanager_numgroups") >= 1


def test_requests_are_counted_by_version_with_their_times(
    monitored: RunningBroker, scraped: Callable[[], Samples]
) -> None:
    admin = AdminClient({"bootstrap.servers": monitored.bootstrap_servers})
    before = requests(scraped(), "Metadata")
    for _ in range(20):
        admin.list_topics(timeout=30)
    samples = scraped()
    assert requests(samples, "Metadata") >= before + 20
    phases = [
        value(samples, f"kafka_network_requestmetrics_{phase}timems_count", request="Metadata")
        for phase in ("requestqueue", "local", "remote", "responsesend", "total")
    ]
    assert set(phases) == {requests(samples, "Metadata")}
    times = [
        value(
            samples,
            "kafka_network_requestmetrics_totaltimems",
            request="Metadata",
            quantile=quantile,
        )
        for quantile in ("0.50", "0.99", "0.999")
    ]
    assert 0 < times[0] <= times[1] <= times[2]


def test_slow_reader_shows_in_the_send_phase(
    monitored: RunningBroker, scraped: Callable[[], Samples]
) -> None:
    create(monitored, "large")
    with WireClient(monitored.bootstrap_servers) as wire:
        records = batch("x" * 900_000)
        for _ in range(30):
            assert produced(wire, produce_request("large", records)) == 0
    host, _, port = monitored.bootstrap_servers.partition(":")
    frame = request_frame(
        fetch_request("large", 0, partition_max_bytes=27_000_000, max_bytes=27_000_000), 11
    )
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(len(frame).to_bytes(4) + frame)
        left = int.from_bytes(slow.recv(4, socket.MSG_WAITALL))
        assert left > 20_000_000  # more than sockets hold
        time.sleep(0.3)  # how long the client keeps the broker waiting
        while left:
            left -= len(slow.recv(min(left, 1_000_000)))
    sent = "kafka_network_requestmetrics_responsesendtimems"
    total = "kafka_network_requestmetrics_totaltimems"
    labels = {"request": "Fetch", "quantile": "0.999"}
    wait_until(lambda: value(scraped(), sent, **labels) >= 200, "the wait is in the send phase")
    samples = scraped()
    assert value(samples, total, **labels) >= value(samples, sent, **labels)


def test_oversized_and_old_batches_are_counted(
    monitored: RunningBroker, scraped: Callable[[], Samples]
) -> None:
    create(monitored, "odd")
    old = build_messages([(0, 1000, b"k", b"v", ()), (1, 1000, b"k", b"w", ())], magic=1)
    with WireClient(monitored.bootstrap_servers) as wire:
        refused = batch("x" * 2_000_000)
        assert produced(wire, produce_request("odd", refused)) == ErrorCode.MESSAGE_TOO_LARGE
        assert produced(wire, produce_request("odd", old), 2) == 0
        answer = wire.ask(fetch_request("odd", 0), 3)
        assert answer.responses[0].partitions[0].error_code == 0
    samples = scraped()
    assert value(samples, f"{TRAFFIC}_bytesrejected_total", topic="odd") == len(refused)
    assert value(samples, f"{TRAFFIC}_producemessageconversions_total", topic="odd") == 2
    assert value(samples, f"{TRAFFIC}_fetchmessageconversions_total", topic="odd") == 2
    assert value(samples, f"{TRAFFIC}_bytesrejected_total") == len(refused)


def produced(wire: WireClient, request: ProduceRequest, version: int = 9) -> int:
    """The error code of a produce request."""
    return wire.ask(request, version).responses[0].partition_responses[0].error_code


def requests(samples: Samples, api: str) -> float:
    """All requests of an API."""
    return sum(
        count
        for (name, labels), count in samples.items()
        if name == "kafka_network_requestmetrics_requests_total" and ("request", api) in labels
    )


def test_errors_are_counted_by_code(
    monitored: RunningBroker, scraped: Callable[[], Samples]
) -> None:
    admin = AdminClient({"bootstrap.servers": monitored.bootstrap_servers})
    (future,) = admin.delete_topics(["missing"]).values()
    with pytest.raises(KafkaException) as failure:
        future.result(30)
    assert failure.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    errors = "kafka_network_requestmetrics_errors_total"
    labels = {"request": "DeleteTopics", "error": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert value(scraped(), errors, **labels) == 1


def test_deleted_topic_leaves_no_series_and_no_smaller_total(
    monitored: RunningBroker, scraped: Callable[[], Samples]
) -> None:
    create(monitored, "deleted")
    produce(monitored, "deleted", 10)
    before = scraped()
    assert value(before, f"{TRAFFIC}_messagesin_total", topic="deleted") == 10
    admin = AdminClient({"bootstrap.servers": monitored.bootstrap_servers})
    (future,) = admin.delete_topics(["deleted"]).values()
    future.result(30)
    wait_until(
        lambda: (
            not any(
                ("topic", "deleted") in labels and "brokertopic" in name
                for name, labels in scraped()
            )
        ),
        "its series are gone",
    )
    total = f"{TRAFFIC}_messagesin_total"
    assert value(scraped(), total) >= value(before, total)


def test_every_name_is_exposed_once(monitored: RunningBroker) -> None:
    _, text = get(f"{admin_url(monitored)}/metrics")
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_partitions_above_the_limit_have_no_series(tmp_path: Path) -> None:
    with running_broker(
        tmp_path,
        admin_listeners="http://127.0.0.1:0",
        metrics_max_partitions=2,
        metrics_dialect="confluent",
    ) as broker:
        create(broker, "many", 5)
        samples = scrape(admin_url(broker))
        assert sum(name == "kafka_log_log_size" for name, _ in samples) == 2
        assert value(samples, "kafka_server_metrics_partitions_left_out") == 3
        assert value(samples, f"{TRAFFIC}_bytesinpersec", topic="many") == 0


@pytest.mark.zk
def test_isr_changes_and_under_replicated_partitions_are_seen(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> None:
    settings = {"admin.listeners": "http://127.0.0.1:0", "replica.lag.time.max.ms": "1500"}
    directory = tmp_path_factory.mktemp("cluster")
    with running_cluster(
        directory, zookeeper_server.fresh_chroot(), brokers=2, settings=settings
    ) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for future in admin.create_topics([NewTopic("watched", 4, 2)]).values():
            future.result(30)
        assert controllers(cluster) == 1
        latency = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
        assert value(of(cluster, 1), latency, quantile="0.99") > 0
        lag = {"clientId": "ReplicaFetcherThread-0-1", "topic": "watched"}
        lags = [name for name, labels in of(cluster, 2) if lag.items() <= dict(labels).items()]
        assert set(lags) <= {"kafka_server_fetcherlagmetrics_consumerlag"}
        cluster.kill(2)
        under = "kafka_server_replicamanager_underreplicatedpartitions"
        wait_until(lambda: value(of(cluster, 1), under) == 4, "all lack a replica")
        assert get(f"{url_of(cluster, 1)}/readyz")[0] == 200
        status, text = get(f"{url_of(cluster, 1)}/readyz?strict")
        assert (status, text) == (503, "4 of 4 led partitions are under-replicated\n")
        cluster.start(2)
        wait_until(lambda: value(of(cluster, 1), under) == 0, "all replicas are in sync again")
        assert value(of(cluster, 1), "kafka_server_replicamanager_isrexpands_total") >= 1
        assert get(f"{url_of(cluster, 1)}/readyz?strict")[0] == 200
        assert controllers(cluster) == 1


def url_of(cluster: Cluster, broker: int) -> str:
    return cluster.servers[broker].wait_for_line(r"admin port is open url=(\S+)")[1]


def of(cluster: Cluster, broker: int) -> Samples:
    return scrape(url_of(cluster, broker))


def controllers(cluster: Cluster) -> float:
    name = "kafka_controller_kafkacontroller_activecontrollercount"
    return sum(value(of(cluster, broker), name) for broker in cluster.servers)
