"""TLS and SASL on Apache Kafka: every kind of listener, and every failure."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.net.client import Client
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from broker.security.scram import ScramMechanism, salted_password
from tests.spark.support import exported
from tests.support.certificates import Authority
from tests.support.kctl import Kctl, KctlResult
from tests.support.processes import free_port
from tests.support.real_kafka import running_kafka

pytestmark = pytest.mark.kafka

PASSWORD = 'pen"cil, =€'
KINDS = ("SSL", "SASL_SSL", "SASL_PLAINTEXT")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Secured:
    """A Kafka with a listener of each kind."""

    plaintext: str
    ports: dict[str, int]
    authority: Authority
    directory: Path

    def properties(self, name: str, **settings: str) -> Path:
        """A client.properties that trusts the authority; `sasl_mechanism` is sasl.mechanism."""
        trusted = self.directory / "authority.pem"
        trusted.write_text(self.authority.certificate)
        wanted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
        wanted |= {key.replace("_", "."): value for key, value in settings.items()}
        path = self.directory / f"{name}.properties"
        lines = [f"{key}={value}\n" for key, value in wanted.items() if value]
        path.write_text("".join(lines), encoding="utf-8")
        return path


def quoted(password: str) -> str:
    """The password as written in a JAAS setting in a properties file: escaped for both."""
    return password.replace('"', '\\\\"').replace("€", "\\u20ac")


def jaas(module: str, password: str = PASSWORD) -> str:
    return f'{module} required username="alice" password="{quoted(password)}";'


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    authority = Authority()
    store = directory / "broker.pem"
    store.write_text(authority.certificate_for("localhost").pem)
    trusted = directory / "trusted.pem"
    trusted.write_text(authority.certificate)
    ports = {kind: free_port() for kind in KINDS}
    plain = jaas(PLAIN).removesuffix(";") + f' user_alice="{quoted(PASSWORD)}";'
    settings: dict[str, object] = {
        "more.listeners": " ".join(f"{kind}://localhost:{port}" for kind, port in ports.items()),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": store,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": trusted,
        "listener.name.ssl.ssl.client.auth": "required",
    }
    for kind in ("sasl_ssl", "sasl_plaintext"):
        settings[f"listener.name.{kind}.plain.sasl.jaas.config"] = plain
        for mechanism in ScramMechanism:
            key = f"listener.name.{kind}.{mechanism.lower()}.sasl.jaas.config"
            settings[key] = f"{SCRAM} required;"
    with running_kafka(directory, settings=settings) as kafka:
        asyncio.run(add_user(kafka.bootstrap_servers))
        yield Secured(kafka.bootstrap_servers, ports, authority, directory)


async def add_user(servers: str) -> None:
    """Alice's password for both hashes, salted by our own mathematics."""
    salt = b"0123456789abcdef"
    updates = [
        ScramCredentialUpsertion(
            name="alice",
            mechanism=number,
            iterations=4096,
            salt=salt,
            salted_password=salted_password(mechanism.hash_name, PASSWORD, salt, 4096),
        )
        for number, mechanism in enumerate(ScramMechanism, start=1)
    ]
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=updates)
    async with Client(servers) as client:
        response = await client.send_to_controller(request)
    assert [result.error_code for result in response.results] == [0]


def brokers(kctl: Kctl, secured: Secured, kind: str, properties: Path) -> KctlResult:
    address = secured.plaintext if kind == "PLAINTEXT" else f"localhost:{secured.ports[kind]}"
    options = ["--command-config", str(properties), "-v"]
    return kctl("brokers", "list", "-b", address, *options, "-o", "json")


@pytest.mark.parametrize(
    ("kind", "mechanism", "module"),
    [
        ("SASL_SSL", "PLAIN", PLAIN),
        ("SASL_SSL", "SCRAM-SHA-256", SCRAM),
        ("SASL_SSL", "SCRAM-SHA-512", SCRAM),
        ("SASL_PLAINTEXT", "SCRAM-SHA-512", SCRAM),
    ],
)
def test_every_mechanism_logs_in(
    kctl: Kctl, secured: Secured, kind: str, mechanism: str, module: str
) -> None:
    settings = {"sasl_mechanism": mechanism, "sasl_jaas_config": jaas(module)}
    properties = secured.properties("good", security_protocol=kind, **settings)
    result = brokers(kctl, secured, kind, properties)
    assert result.exit_code == 0, result.stderr
    assert result.json[0]["port"] == secured.ports[kind]


def test_client_certificate_with_a_locked_key_is_presented(kctl: Kctl, secured: Secured) -> None:
    own = secured.directory / "client.pem"
    own.write_text(secured.authority.certificate_for("alice", password="locked").pem)
    settings = {"ssl_keystore_location": str(own), "ssl_key_password": "locked"}
    properties = secured.properties("mutual", security_protocol="SSL", **settings)
    assert brokers(kctl, secured, "SSL", properties).exit_code == 0


def test_records_go_in_and_come_out_through_librdkafka(kctl: Kctl, secured: Secured) -> None:
    settings = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_jaas_config": jaas(SCRAM)}
    properties = secured.properties("stream", security_protocol="SASL_SSL", **settings)
    address = f"localhost:{secured.ports['SASL_SSL']}"
    shared = ["-b", address, "--command-config", str(properties)]
    assert kctl("topics", "create", "safe", *shared).exit_code == 0
    assert kctl("produce", "safe", *shared, stdin="one\ntwo\n").exit_code == 0
    assert kctl("consume", "safe", "--exit", *shared).output == "one\ntwo\n"


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_topic_is_exported_by_tasks_that_log_in(
    kctl: Kctl, secured: Secured, tmp_path: Path
) -> None:
    settings = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_jaas_config": jaas(SCRAM)}
    properties = secured.properties("export", security_protocol="SASL_SSL", **settings)
    address = f"localhost:{secured.ports['SASL_SSL']}"
    shared = ["-b", address, "--command-config", str(properties)]
    assert kctl("topics", "create", "wanted", "--partitions", "3", *shared).exit_code == 0
    assert kctl("produce", "wanted", *shared, stdin="one\ntwo\n").exit_code == 0
    target = tmp_path / "out"
    command = [sys.executable, "-m", "kctl", "spark-export", "wanted", *shared, "--to", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert sorted(row["value"] for row in exported(target)) == [b"one", b"two"]


ANYTHING = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_jaas_config": jaas(SCRAM)}
WRONG = ANYTHING | {"sasl_jaas_config": jaas(SCRAM, "wrong-Password")}


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("SASL_SSL", {"security_protocol": "SASL_SSL", **WRONG}, "refused the login"),
        (
            "SASL_PLAINTEXT",
            {"security_protocol": "SASL_PLAINTEXT", **ANYTHING, "sasl_mechanism": "SCRAM-SHA-256"},
            "it offers SCRAM-SHA-512",
        ),
        ("PLAINTEXT", {"security_protocol": "SSL"}, "plaintext listener"),
        ("SASL_SSL", {"security_protocol": "PLAINTEXT"}, "TLS"),
        ("SASL_PLAINTEXT", {"security_protocol": "PLAINTEXT"}, "does the listener require SASL?"),
        ("PLAINTEXT", {"security_protocol": "SASL_PLAINTEXT", **ANYTHING}, "has no SASL"),
        ("SSL", {"security_protocol": "SSL"}, "requires a client certificate"),
        (
            "SASL_SSL",
            {"security_protocol": "SASL_SSL", **ANYTHING, "ssl_truststore_location": ""},
            "not trusted",
        ),
    ],
)
def test_every_security_failure_is_one_line(
    kctl: Kctl, secured: Secured, kind: str, settings: dict[str, str], words: str
) -> None:
    result = brokers(kctl, secured, kind, secured.properties("bad", **settings))
    first = result.stderr.splitlines()[0]
    assert result.exit_code == 1, result.stderr
    assert words in first
    assert PASSWORD not in result.stderr and "wrong-Password" not in result.stderr


def test_producer_with_a_wrong_password_gives_up_at_once(kctl: Kctl, secured: Secured) -> None:
    properties = secured.properties("wrong", security_protocol="SASL_SSL", **WRONG)
    address = f"localhost:{secured.ports['SASL_SSL']}"
    shared = ["-b", address, "--command-config", str(properties)]
    result = kctl("produce", "safe", *shared, stdin="one\n")
    assert result.exit_code == 1
    assert "refused the login" in result.stderr
