"""Kafka's own tools (the Java client) through every mechanism of our broker."""

import subprocess
import uuid
from pathlib import Path

import pytest

from tests.secured.conftest import PROTOCOLS, SecuredBroker, password_of
from tests.support.real_kafka import java_command
from tests.support.secured import count_records, jaas

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

NUM = 200
LOGINS = [
    ("SSL", "", ""),
    ("MTLS", "", ""),
    ("SASL", "PLAIN", "alice"),
    ("SASL", "SCRAM-SHA-256", "bob"),
    ("BOTH", "SCRAM-SHA-512", "carol, the=2nd"),
    ("SASL", "OAUTHBEARER", "dave"),
    ("BRIEF", "PLAIN", "alice"),
]


def properties(
    secured: SecuredBroker, directory: Path, listener: str, mechanism: str, user: str
) -> Path:
    """client.properties with PEM files, as a Java client reads them."""
    lines = {
        "security.protocol": PROTOCOLS[listener],
        "bootstrap.servers": secured.addresses[listener],
    }
    if PROTOCOLS[listener].endswith("SSL"):
        lines |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(secured.certificates.trusted),
        }
    if listener == "MTLS":
        lines |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(secured.certificates.client("mallory")),
        }
    if mechanism == "OAUTHBEARER":
        options = {
            "unsecuredLoginStringClaim_sub": user,
            "unsecuredLoginStringClaim_scope": "kafka",
        }
        lines |= {"sasl.jaas.config": jaas(mechanism, **options), "sasl.mechanism": mechanism}
    elif mechanism:
        login = jaas(mechanism, username=user, password=password_of(user))
        lines |= {"sasl.jaas.config": login, "sasl.mechanism": mechanism}
    path = directory / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return path


def tool(main_class: str, *args: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        java_command(main_class, *args),
        input=given,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize(("listener", "mechanism", "user"), LOGINS)
def test_java_producer_and_consumer(
    secured: SecuredBroker, tmp_path: Path, listener: str, mechanism: str, user: str
) -> None:
    config = str(properties(secured, tmp_path, listener, mechanism, user))
    topic, address = f"java-{uuid.uuid4().hex[:8]}", secured.addresses[listener]
    records = ["--num-records", str(NUM), "--record-size", "100", "--throughput", "-1"]
    produced = tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *["--topic", topic, *records, "--producer.config", config],
    )
    assert produced.returncode == 0, produced.stderr
    assert f"{NUM} records sent" in produced.stdout
    consumed = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *["--bootstrap-server", address, "--topic", topic, "--from-beginning"],
        *["--max-messages", str(NUM), "--timeout-ms", "60000", "--consumer.config", config],
    )
    assert len(consumed.stdout.splitlines()) == NUM, consumed.stderr
    counted = count_records(secured.client("OPEN"), topic, f"oracle-{topic}", NUM)
    assert counted == NUM


def test_java_client_reports_a_wrong_password(secured: SecuredBroker, tmp_path: Path) -> None:
    config = properties(secured, tmp_path, "SASL", "SCRAM-SHA-512", "bob")
    config.write_text(config.read_text().replace(password_of("bob"), "wrong"))
    listed = tool(
        "org.apache.kafka.tools.TopicCommand",
        *["--bootstrap-server", secured.addresses["SASL"], "--list"],
        *["--command-config", str(config)],
    )
    assert listed.returncode != 0
    assert (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-512"
    ) in listed.stdout + listed.stderr


def test_kafkas_tools_manage_delegation_tokens(secured: SecuredBroker, tmp_path: Path) -> None:
    config = str(properties(secured, tmp_path, "SASL", "PLAIN", "alice"))
    command = "org.apache.kafka.tools.DelegationTokenCommand"
    common = ["--bootstrap-server", secured.addresses["SASL"], "--command-config", config]
    made = tool(command, *common, *["--create", "--max-life-time-period", "-1"])
    assert made.returncode == 0, made.stdout + made.stderr
    row = next(line.split() for line in made.stdout.splitlines() if "User:alice" in line)
    token_id, hmac = row[0], row[1]
    login = jaas("SCRAM-SHA-256", username=token_id, password=hmac, tokenauth="true")
    by_token = tmp_path / "token.properties"
    by_token.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={login}\n"
    )
    listed = tool(
        "org.apache.kafka.tools.TopicCommand",
        *["--bootstrap-server", secured.addresses["SASL"], "--list"],
        *["--command-config", str(by_token)],
    )
    assert listed.returncode == 0, listed.stdout + listed.stderr
    renewed = tool(command, *common, *["--renew", "--renew-time-period", "-1", "--hmac", hmac])
    assert renewed.returncode == 0, renewed.stdout + renewed.stderr
    # Without an owner the tool sends an empty list, for which Kafka too returns no token.
    mine = ["--describe", "--owner-principal", "User:alice"]
    assert token_id in tool(command, *common, *mine).stdout
    expired = tool(command, *common, *["--expire", "--expiry-time-period", "-1", "--hmac", hmac])
    assert expired.returncode == 0, expired.stdout + expired.stderr
    assert token_id not in tool(command, *common, *mine).stdout
