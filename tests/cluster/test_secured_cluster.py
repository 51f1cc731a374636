"""Three of our brokers with SASL_SSL between them and for clients, and mTLS for control.

Inter-broker logins use SCRAM: the broker's user is in ZooKeeper before the first broker starts, as
Kafka needs it too.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker.api.scram_credentials import text_of
from broker.security.scram import ScramMechanism, make_credential
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.processes import free_port
from tests.support.secured import (
    Certificates,
    count_records,
    jaas,
    librdkafka,
    login,
    produce,
    round_trip,
)
from tests.support.zookeeper import ZooKeeper

pytestmark = pytest.mark.timeout(180)

SCRAM = "SCRAM-SHA-512"
ADMIN = ("admin", "admin-canary-secret")


def settings(certificates: Certificates) -> dict[str, object]:
    """What all brokers have; the listeners have their ports."""
    return certificates.settings() | {
        "listener.security.protocol.map": "SECURE:SASL_SSL,CONTROL:SSL",
        "inter.broker.listener.name": "SECURE",
        "control.plane.listener.name": "CONTROL",
        "listener.name.control.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        "sasl.mechanism.inter.broker.protocol": SCRAM,
        "listener.name.secure.scram-sha-512.sasl.jaas.config": jaas(
            SCRAM, username=ADMIN[0], password=ADMIN[1]
        ),
        "listener.name.secure.plain.sasl.jaas.config": jaas("PLAIN", user_alice="alice-canary"),
        "offsets.topic.replication.factor": 3,
    }


def create_user(cluster: Cluster, name: str, password: str) -> None:
    """As kafka-configs --zookeeper does before the first broker starts."""
    credential = make_credential(ScramMechanism(SCRAM), password)
    config = {"version": 1, "config": {SCRAM: text_of(credential)}}
    cluster.tree.create(f"/config/users/{name}", json.dumps(config).encode(), makepath=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory,
    zookeeper_server: ZooKeeper,
    certificates: Certificates,
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("secured")
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(directory, chroot, 0, settings(certificates)) as made:
        create_user(made, *ADMIN)
        for broker_id in (1, 2, 3):
            start(made, broker_id)
        yield made


def start(cluster: Cluster, broker_id: int) -> None:
    port = cluster.ports.setdefault(broker_id, free_port())
    listeners = f"SECURE://127.0.0.1:{port},CONTROL://127.0.0.1:0"
    cluster.start(broker_id, settings={"listeners": listeners})


def client(cluster: Cluster, certificates: Certificates) -> dict[str, Any]:
    who = login(SCRAM, *ADMIN)
    return librdkafka(cluster.bootstrap_servers, "SASL_SSL", certificates, **who)


def make_topic(cluster: Cluster, certificates: Certificates, topic: str) -> None:
    admin = AdminClient(client(cluster, certificates))
    replicas = NewTopic(topic, 3, 3, config={"min.insync.replicas": "2"})
    for future in admin.create_topics([replicas]).values():
        future.result(30)
    wait_until(lambda: cluster.isr(topic, 2) != [], "the topic has leaders")


def test_records_replicate_and_groups_read_them(
    cluster: Cluster, certificates: Certificates
) -> None:
    make_topic(cluster, certificates, "orders")
    assert round_trip(client(cluster, certificates), "orders", 300) == 300
    wait_until(lambda: all(len(cluster.isr("orders", p)) == 3 for p in range(3)), "in sync")


def test_leaders_move_and_nothing_is_lost_when_a_broker_dies(
    cluster: Cluster, certificates: Certificates
) -> None:
    make_topic(cluster, certificates, "durable")
    settings_of_client = client(cluster, certificates)
    assert round_trip(settings_of_client, "durable", 300) == 300
    victim = cluster.leader("durable", 0)
    assert victim is not None
    cluster.kill(victim)
    wait_until(lambda: cluster.leader("durable", 0) not in (None, victim), "another leads")
    produce(settings_of_client, "durable", 100)
    start(cluster, victim)
    wait_until(lambda: len(cluster.isr("durable", 0)) == 3, "in sync again", timeout_s=40)
    assert count_records(settings_of_client, "durable", "all of them", 400) == 400


def test_controller_uses_the_control_plane_listener(
    cluster: Cluster, certificates: Certificates
) -> None:
    registered = cluster.znode("/brokers/ids/1")
    assert registered["listener_security_protocol_map"] == {"SECURE": "SASL_SSL", "CONTROL": "SSL"}
    control = registered["endpoints"][1].rpartition(":")[2]
    controller = cluster.controller_id()
    other = next(broker for broker in (1, 2, 3) if broker != controller)
    port = int(cluster.znode(f"/brokers/ids/{other}")["endpoints"][1].rpartition(":")[2])
    assert port != 0
    assert control != "0"
    assert established_to(cluster.servers[controller or 1].process.pid, port)


def established_to(pid: int, port: int) -> bool:
    """Whether a process has a TCP connection to a local port (from /proc/net/tcp)."""
    sockets = {
        target
        for fd in Path(f"/proc/{pid}/fd").iterdir()
        if (target := str(fd.readlink())).startswith("socket:")
    }
    rows = [row.split() for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return any(row[2].endswith(f":{port:04X}") and f"socket:[{row[9]}]" in sockets for row in rows)


def test_no_secret_is_logged(cluster: Cluster) -> None:
    for log in cluster.directory.glob("*.log"):
        text = log.read_text()
        assert "canary" not in text
        assert "Traceback" not in text
