"""A broker with everything on, configured as for Apache Kafka; afterwards no secret is anywhere.

Its logins come from a JAAS file that KAFKA_OPTS names, the keys of its OAuth provider over https,
and it writes its decisions as JSON lines. Every secret contains CANARY.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import jwt
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.asymmetric import ec

from broker.errors import ErrorCode
from tests.secured.conftest import CANARY, SECURED_VALIDATOR, jwks_of, password_of
from tests.secured.test_sasl import GOOD, oauth
from tests.support.cluster import wait_until
from tests.support.https import DocumentServer, serving
from tests.support.processes import ServerProcess
from tests.support.secured import Certificates, jaas, librdkafka, login, round_trip
from tests.support.wire import WireClient

STARTED = r"started broker\.id=\d+ listeners=(.*)"
PROTOCOLS = "BOTH:SASL_SSL,SIGNED:SASL_PLAINTEXT"


@dataclass(frozen=True)
class Run:
    """The broker and all that belongs to it, in one directory."""

    directory: Path
    certificates: Certificates
    server: ServerProcess
    provider: DocumentServer
    addresses: dict[str, str]
    key: ec.EllipticCurvePrivateKey

    @property
    def audit_path(self) -> Path:
        return self.directory / "audit.jsonl"

    def client(self, user: str, password: str, mechanism: str = "PLAIN") -> dict[str, Any]:
        who = login(mechanism, user, password)
        return librdkafka(self.addresses["BOTH"], "SASL_SSL", self.certificates, **who)

    def kctl(self, *words: str, **environment: str) -> CompletedProcess[str]:
        """Run kctl as a process of its own, which the process list shows."""
        config = self.directory / "client" / "admin.properties"
        where = ("-b", self.addresses["BOTH"], "--command-config", str(config))
        command = [sys.executable, "-m", "kctl", *words, *where]
        usual = {key: text for key, text in os.environ.items() if not key.startswith("KCTL_")}
        own = usual | {"HOME": str(self.directory / "home")} | environment
        return subprocess.run(command, env=own, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    directory = tmp_path_factory.mktemp("full-run")
    certificates = Certificates.make(directory)
    key = ec.generate_private_key(ec.SECP256R1())
    (directory / "client").mkdir()
    (directory / "home").mkdir()
    with serving(certificates.own, jwks_of(key, "key-1")) as provider:
        environment = os.environ | {"KAFKA_OPTS": _write_jaas_file(directory)}
        _write_properties(directory, certificates, provider.url)
        _write_client(directory, certificates)
        command = [sys.executable, "-m", "broker", str(directory / "secret" / "server.properties")]
        with ServerProcess(command, directory / "broker.log", environment) as server:
            listeners = server.wait_for_line(STARTED, timeout_s=30)[1]
            addresses = dict(re.findall(r"(\w+)://([\w.]+:\d+)", listeners))
            yield Run(directory, certificates, server, provider, addresses, key)


def _write_jaas_file(directory: Path) -> str:
    users = {f"user_{name}": password_of(name) for name in ("admin", "alice")}
    plain = jaas("PLAIN", username="admin", password=password_of("admin"), **users)
    path = directory / "secret" / "kafka_server_jaas.conf"
    path.parent.mkdir()
    path.write_text(f"// Logins of clients.\nKafkaServer {{\n    {plain}\n}};\n")
    return f"-Xmx1g -Djava.security.auth.login.config={path}"


def _write_properties(directory: Path, certificates: Certificates, jwks_url: str) -> None:
    store = directory / "broker.p12"
    own = certificates.authority.certificate_for("localhost", "127.0.0.1")
    store.write_bytes(own.pkcs12(f"store-{CANARY}"))
    signed = "listener.name.signed."
    settings = {
        "broker.id": 1,
        "listeners": "BOTH://localhost:0,SIGNED://localhost:0",
        "listener.security.protocol.map": PROTOCOLS,
        "inter.broker.listener.name": "BOTH",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": store,
        "ssl.keystore.password": f"store-{CANARY}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates.trusted,
        f"{signed}sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{signed}oauthbearer.sasl.jaas.config": jaas("OAUTHBEARER"),
        f"{signed}oauthbearer.sasl.server.callback.handler.class": SECURED_VALIDATOR,
        f"{signed}sasl.oauthbearer.jwks.endpoint.url": jwks_url,
        f"{signed}sasl.oauthbearer.jwks.endpoint.refresh.ms": 200,
        f"{signed}sasl.oauthbearer.expected.audience": "kafka",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "authorizer.audit.json.path": directory / "audit.jsonl",
        "super.users": "User:admin",
        "delegation.token.secret.key": f"tokens-{CANARY}",
        "password.encoder.secret": f"encoder-{CANARY}",
        "offsets.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.dirs": directory / "data",
    }
    path = directory / "secret" / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _write_client(directory: Path, certificates: Certificates) -> None:
    login_module = jaas("PLAIN", username="admin", password=password_of("admin"))
    (directory / "client" / "admin.properties").write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={certificates.trusted}\nsasl.jaas.config={login_module}\n"
    )


def test_logins_of_the_jaas_file_hold(run: Run) -> None:
    assert round_trip(run.client("admin", password_of("admin")), "jaas-file", 20) == 20
    with pytest.raises(KafkaException):
        AdminClient(run.client("admin", "wrong")).list_topics(timeout=3)


def signed_token(key: ec.EllipticCurvePrivateKey, key_id: str) -> str:
    now = int(time.time())
    claims = GOOD | {"iat": now, "exp": now + 60}
    return jwt.encode(claims, key, "ES256", headers={"kid": key_id})


def login_code(run: Run, token: str) -> int:
    with WireClient(run.addresses["SIGNED"]) as client:
        code: int = oauth(client, token)[0]
        return code


def test_keys_of_the_provider_are_read_over_https_and_followed(run: Run) -> None:
    wait_until(lambda: run.provider.num_requests > 0, "the keys are read")
    wait_until(lambda: login_code(run, signed_token(run.key, "key-1")) == 0, "a login")
    renewed = ec.generate_private_key(ec.SECP256R1())
    refused = ErrorCode.SASL_AUTHENTICATION_FAILED
    assert login_code(run, signed_token(renewed, "key-2")) == refused
    run.provider.document = jwks_of(renewed, "key-2")
    wait_until(lambda: login_code(run, signed_token(renewed, "key-2")) == 0, "the new key")
    assert login_code(run, signed_token(run.key, "key-1")) == refused
    run.provider.document = "no JSON"
    count = run.provider.num_requests
    wait_until(lambda: run.provider.num_requests > count + 1, "further requests")
    assert login_code(run, signed_token(renewed, "key-2")) == 0  # the keys read last stay valid


def test_denied_access_is_a_json_line(run: Run) -> None:
    errors: list[object] = []
    producer = Producer(run.client("alice", password_of("alice")) | {"client.id": "till-3"})
    producer.produce("jaas-file", b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(20)
    assert errors
    lines = [json.loads(line) for line in run.audit_path.read_text().splitlines()]
    denied = [line for line in lines if line["client_id"] == "till-3" and line["allowed"] is False]
    last = denied[-1]
    assert last.pop("time").endswith("Z")
    expected = {
        "principal": "User:alice",
        "host": "127.0.0.1",
        "client_id": "till-3",
        "resource_type": "TOPIC",
        "resource": "jaas-file",
        "allowed": False,
        "reason": "no acl",
        "acl": None,
        "reference_count": 1,
    }
    assert last.items() >= expected.items()
    assert {line["api"] for line in denied} <= {"METADATA", "Metadata", "PRODUCE", "Produce"}


@contextmanager
def watching_process_list(run: Run) -> Iterator[set[bytes]]:
    """Collects the command lines of this test's processes that run meanwhile.

    They and their descendants have the run's directory in the environment. Other tests, which run
    at the same time, have other directories, and pass passwords as they like.
    """
    mark = str(run.directory).encode()
    found: set[bytes] = set()
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(0.01):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if mark in (process / "environ").read_bytes():
                        found.add((process / "cmdline").read_bytes())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        stopped.set()
        thread.join()


def test_no_secret_is_in_any_log_error_description_journal_or_process_list(run: Run) -> None:
    with watching_process_list(run) as shown:
        results = list(_use_everything(run))
    assert {module for line in shown for module in line.split(b"\0")[2:3]} >= {b"broker", b"kctl"}
    assert [line for line in shown if CANARY.encode() in line] == []
    assert run.server.process.poll() is None
    for result in results:
        assert CANARY not in result.stdout + result.stderr
    skipped = {"secret", "client"}  # where the secrets belong
    for path in run.directory.rglob("*"):
        if path.is_file() and path.relative_to(run.directory).parts[0] not in skipped:
            assert CANARY.encode() not in path.read_bytes(), path
    assert "Traceback" not in run.server.log_file.read_text()


def _use_everything(run: Run) -> Iterator[CompletedProcess[str]]:
    """Create users and tokens, fail in many ways, describe everything."""
    secret = {"NEW_PASSWORD": f"scram-{CANARY}"}
    set_user = ("users", "set", "zoe", "--mechanism", "SCRAM-SHA-256")
    yield (made := run.kctl(*set_user, "--password-env", "NEW_PASSWORD", "--yes", **secret))
    assert made.returncode == 0, made.stderr
    assert round_trip_fails(run.client("zoe", f"wrong-{CANARY}", "SCRAM-SHA-256"))
    assert round_trip_fails(run.client("alice", f"wrong-{CANARY}"))
    yield run.kctl("acls", "add", "topic:secrets", "--allow", "zoe", "--producer")
    yield run.kctl("tokens", "create", "--max-lifetime", "1h")
    yield run.kctl("users", "list", "-o", "json")
    changes = (
        f"listener.name.both.scram-sha-256.sasl.jaas.config={jaas('SCRAM', password=CANARY)}",
        f"listener.name.both.ssl.keystore.password=wrong-{CANARY}",
        f"listener.name.both.ssl.keystore.location=/missing/{'x' * 5}.p12",
    )
    for change in changes:
        with alteration_file(run, change) as path:
            yield run.kctl("configs", "alter", "broker:1", "--add-config-file", str(path), "--yes")
    for output in ("table", "json"):
        yield run.kctl("configs", "describe", "broker:1", "--all", "-o", output)
    yield run.kctl("cluster")


@contextmanager
def alteration_file(run: Run, text: str) -> Iterator[Path]:
    path = run.directory / "secret" / "change.properties"
    path.write_text(text + "\n")
    yield path


def round_trip_fails(settings: dict[str, Any]) -> bool:
    try:
        AdminClient(settings).list_topics(timeout=3)
    except KafkaException as error:
        assert CANARY not in str(error)
        return True
    return False
