"""Two of our brokers and one Apache Kafka in one secured cluster: each in each role.

SASL_SSL with SCRAM between all of them. Users, tokens and records made through one are valid on the
others.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    UserScramCredentialUpsertion,
)
from confluent_kafka.admin import ScramMechanism as AdminMechanism

from broker.api.scram_credentials import text_of
from broker.security.scram import ScramMechanism, make_credential
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster, running_cluster, wait_until
from tests.support.processes import free_port
from tests.support.real_kafka import java_command, joined_kafka
from tests.support.secured import Certificates, count_records, jaas, librdkafka, login, produce
from tests.support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

KAFKA = 3
SCRAM = "SCRAM-SHA-512"
ADMIN = ("admin", "admin-canary-secret")


def settings(certificates: Certificates) -> dict[str, object]:
    """The same for both implementations."""
    return certificates.settings() | {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL",
        "inter.broker.listener.name": "SECURE",
        "sasl.enabled.mechanisms": SCRAM,
        "sasl.mechanism.inter.broker.protocol": SCRAM,
        "listener.name.secure.scram-sha-512.sasl.jaas.config": jaas(
            SCRAM, username=ADMIN[0], password=ADMIN[1]
        ),
        "delegation.token.secret.key": "token-canary-secret",
        "offsets.topic.replication.factor": 3,
        "offsets.topic.num.partitions": 3,
        "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
        "auto.leader.rebalance.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
    }


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory,
    zookeeper_server: ZooKeeper,
    certificates: Certificates,
) -> Iterator[Cluster]:
    directory, chroot = tmp_path_factory.mktemp("mixed"), zookeeper_server.fresh_chroot()
    shared = settings(certificates)
    with running_cluster(directory, chroot, 0, shared) as made:
        credential = text_of(make_credential(ScramMechanism(SCRAM), ADMIN[1]))
        user = json.dumps({"version": 1, "config": {SCRAM: credential}}).encode()
        made.tree.create(f"/config/users/{ADMIN[0]}", user, makepath=True)
        for broker_id in (1, 2):
            port = made.ports.setdefault(broker_id, free_port())
            listeners = f"SECURE://127.0.0.1:{port},PLAINTEXT://127.0.0.1:0"
            made.start(broker_id, settings={"listeners": listeners})
        port = made.ports[KAFKA] = free_port()
        own = {"more.listeners": f"SECURE://127.0.0.1:{port}"}
        with joined_kafka(directory, chroot, KAFKA, shared | own):
            wait_until(lambda: made.live_brokers() == [1, 2, 3], "all have joined", timeout_s=90)
            yield made


def client(cluster: Cluster, certificates: Certificates, *brokers: int) -> dict[str, Any]:
    addresses = ",".join(cluster.address(broker_id) for broker_id in brokers or (1, 2, 3))
    return librdkafka(addresses, "SASL_SSL", certificates, **login(SCRAM, *ADMIN))


def control_by(cluster: Cluster, wanted: int) -> None:
    def is_won() -> bool:
        controller = cluster.controller_id()
        if controller not in (None, wanted):
            cluster.tree.delete("/controller")
        return controller == wanted

    wait_until(is_won, f"broker {wanted} controls", timeout_s=90)


@pytest.mark.parametrize("controller", [1, KAFKA])
def test_records_replicate_under_each_controller(
    cluster: Cluster, certificates: Certificates, controller: int
) -> None:
    control_by(cluster, controller)
    topic = f"orders-{controller}"
    wanted = NewTopic(topic, 3, 3, config={"min.insync.replicas": "3"})

    def is_made() -> bool:
        # A new client each time: librdkafka goes on asking the controller it once knew.
        admin = AdminClient(client(cluster, certificates))
        try:
            admin.create_topics([wanted])[topic].result(20)
        except Exception as error:  # noqa: BLE001 - the controller has just changed
            return "already exists" in str(error)
        return True

    wait_until(is_made, "the topic is made", timeout_s=60)
    wait_until(
        lambda: all(len(cluster.isr(topic, p)) == 3 for p in range(3)), "in sync", timeout_s=60
    )
    assert {cluster.leader(topic, p) for p in range(3)} == {1, 2, KAFKA}
    produce(client(cluster, certificates), topic, 300)
    assert count_records(client(cluster, certificates), topic, f"group-{topic}", 300) == 300


@pytest.mark.parametrize(("made_on", "used_on"), [(1, KAFKA), (KAFKA, 1)])
def test_user_made_on_one_is_known_to_the_other(
    cluster: Cluster, certificates: Certificates, made_on: int, used_on: int
) -> None:
    control_by(cluster, made_on)  # credentials are changed by the controller
    name = f"user-{made_on}"
    change = UserScramCredentialUpsertion(
        name, ScramCredentialInfo(AdminMechanism.SCRAM_SHA_512, 4096), b"secret"
    )

    def is_made() -> bool:
        admin = AdminClient(client(cluster, certificates, made_on))
        try:
            admin.alter_user_scram_credentials([change])[name].result(20)
        except Exception:  # noqa: BLE001 - the controller has just changed
            return False
        return True

    wait_until(is_made, "the user is made", timeout_s=60)
    address = cluster.address(used_on)

    def is_known() -> bool:
        who = login(SCRAM, name, "secret")
        other = AdminClient(librdkafka(address, "SASL_SSL", certificates, **who))
        try:
            return bool(other.list_topics(timeout=5).brokers)
        except Exception:  # noqa: BLE001 - not yet
            return False

    wait_until(is_known, "the user may log in", timeout_s=40)


@pytest.mark.parametrize(("made_on", "used_on"), [(1, KAFKA), (KAFKA, 2)])
def test_token_made_on_one_is_valid_on_the_other(
    cluster: Cluster, certificates: Certificates, tmp_path: Path, made_on: int, used_on: int
) -> None:
    def properties(name: str, **options: str) -> str:
        path = tmp_path / f"{name}.properties"
        lines = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": SCRAM,
            "sasl.jaas.config": jaas(SCRAM, **options),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": certificates.trusted,
        }
        path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        return str(path)

    made = tool(
        "org.apache.kafka.tools.DelegationTokenCommand",
        *["--bootstrap-server", cluster.address(made_on), "--create"],
        *["--max-life-time-period", "-1"],
        *["--command-config", properties("admin", username=ADMIN[0], password=ADMIN[1])],
    )
    token_id, hmac = next(line.split()[:2] for line in made.splitlines() if "User:admin" in line)
    by_token = properties("token", username=token_id, password=hmac, tokenauth="true")
    time.sleep(1)  # the notification
    listed = tool(
        "org.apache.kafka.tools.TopicCommand",
        *["--bootstrap-server", cluster.address(used_on), "--list", "--command-config", by_token],
    )
    assert "orders-1" in listed


def tool(main_class: str, *args: str) -> str:
    done = subprocess.run(
        java_command(main_class, *args), capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
