"""Certificates and passwords that change while the broker runs; secrets are never shown."""

import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from broker.protocol.messages.api_versions import ApiVersionsRequest
from tests.secured.conftest import CANARY, SecuredBroker
from tests.secured.test_tls import TlsWireClient
from tests.support.broker import RunningBroker, running_broker
from tests.support.cluster import wait_until
from tests.support.secured import Certificates

VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
PREFIX = "listener.name.tls."
BEGIN = "-----BEGIN CERTIFICATE-----"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("changes"))


@pytest.fixture(scope="module")
def broker(certificates: Certificates) -> Iterator[RunningBroker]:
    settings: dict[str, object] = {
        "listeners": "TLS://localhost:0,OPEN://localhost:0",
        "listener.security.protocol.map": "TLS:SSL,OPEN:PLAINTEXT",
        "inter.broker.listener.name": "OPEN",
        "password.encoder.secret": CANARY,
        "broker.id": 1,
    }
    own = certificates.settings()
    with running_broker(certificates.directory, **own, **settings) as running:
        yield running


def served(broker: RunningBroker, certificates: Certificates) -> bytes:
    """The certificate that new connections get."""
    context = ssl.create_default_context(cafile=str(certificates.trusted))
    with TlsWireClient(broker.bootstrap_servers, context) as client:
        assert client.ask(VERSIONS, 3).error_code == 0
        assert isinstance(client.socket, ssl.SSLSocket)
        return client.socket.getpeercert(binary_form=True) or b""


def replace(path: Path, text: str) -> None:
    """As tools that renew certificates do: the new file takes the place of the old one."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_new_certificate_is_served_and_open_connections_stay(
    broker: RunningBroker, certificates: Certificates
) -> None:
    before = served(broker, certificates)
    context = ssl.create_default_context(cafile=str(certificates.trusted))
    with TlsWireClient(broker.bootstrap_servers, context) as old:
        renewed = certificates.authority.certificate_for("localhost", "127.0.0.1")
        replace(certificates.own, renewed.pem)
        after = ssl.PEM_cert_to_DER_cert(renewed.certificate)
        wait_until(lambda: served(broker, certificates) == after, "the new one is served")
        assert before != after
        assert old.ask(VERSIONS, 3).error_code == 0


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("other.example", "Keystore DistinguishedName does not match"),
        ("", "the certificate or its private key is malformed"),
    ],
)
def test_unusable_new_certificate_is_reported_and_the_old_one_stays(
    broker: RunningBroker, certificates: Certificates, host: str, words: str
) -> None:
    before, text = served(broker, certificates), certificates.own.read_text()
    nonsense = f"{BEGIN}\nnonsense\n{BEGIN.replace('BEGIN', 'END')}\n"
    new = certificates.authority.certificate_for(host).pem if host else nonsense
    replace(certificates.own, new)
    wait_until(lambda: words in broker.output(), "it is reported")
    assert served(broker, certificates) == before
    replace(certificates.own, text)


def alter(broker: RunningBroker, values: dict[str, str]) -> None:
    open_address = _open_address(broker)
    admin = AdminClient({"bootstrap.servers": open_address})
    resource = ConfigResource(
        ResourceType.BROKER,
        "1",
        incremental_configs=[
            ConfigEntry(PREFIX + key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in values.items()
        ],
    )
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def _open_address(broker: RunningBroker) -> str:
    found = re.search(r"OPEN://([\w.]+:\d+)", broker.output())
    assert found
    return found[1]


def test_key_store_is_changed_dynamically_with_an_encrypted_password(
    broker: RunningBroker, certificates: Certificates, tmp_path: Path
) -> None:
    renewed = certificates.authority.certificate_for("localhost", "127.0.0.1")
    store = tmp_path / "renewed.p12"
    store.write_bytes(renewed.pkcs12(f"store-{CANARY}"))
    alter(
        broker,
        {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": f"store-{CANARY}",
        },
    )
    after = ssl.PEM_cert_to_DER_cert(renewed.certificate)
    wait_until(lambda: served(broker, certificates) == after, "the new one is served")
    for path in broker.log_dir.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes()


def test_unusable_key_store_is_refused_and_changes_nothing(
    broker: RunningBroker, certificates: Certificates
) -> None:
    before = served(broker, certificates)
    with pytest.raises(KafkaException, match="no-such-file"):
        alter(broker, {"ssl.keystore.location": "/no-such-file.pem"})
    assert served(broker, certificates) == before


def test_no_secret_is_logged_described_or_stored(secured: SecuredBroker) -> None:
    time.sleep(0.1)
    assert CANARY not in secured.broker.output()
    admin = AdminClient(secured.client("BOTH", "PLAIN", "admin"))
    broker_id = str(next(iter(admin.list_topics(timeout=10).brokers)))
    resource = ConfigResource(ResourceType.BROKER, broker_id)
    for future in admin.describe_configs([resource]).values():
        described = future.result(20)
        assert described["delegation.token.secret.key"].value is None
        assert not [entry for entry in described.values() if CANARY in str(entry.value)]
    for path in secured.broker.log_dir.rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path


def test_password_that_cannot_be_decrypted_is_removed_with_the_next_change(tmp_path: Path) -> None:
    """As Kafka does: after a restart with another secret, a change keeps only what is usable."""
    certificates = Certificates.make(tmp_path)
    store = tmp_path / "own.p12"
    own = certificates.authority.certificate_for("localhost", "127.0.0.1")
    store.write_bytes(own.pkcs12(f"store-{CANARY}"))
    settings: dict[str, object] = certificates.settings() | {
        "listeners": "TLS://localhost:0,OPEN://localhost:0",
        "listener.security.protocol.map": "TLS:SSL,OPEN:PLAINTEXT",
        "inter.broker.listener.name": "OPEN",
        "broker.id": 1,
    }
    with running_broker(tmp_path, **settings, password_encoder_secret=CANARY) as broker:
        alter(
            broker,
            {
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": str(store),
                "ssl.keystore.password": f"store-{CANARY}",
            },
        )
        assert PREFIX + "ssl.keystore.password" in dynamic_settings(broker)
    with running_broker(tmp_path, **settings, password_encoder_secret="another") as broker:
        alter(broker, {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificates.own)})
        assert dynamic_settings(broker).keys() == {
            PREFIX + "ssl.keystore.type",
            PREFIX + "ssl.keystore.location",
        }
        assert "removing passwords that cannot be decrypted" in broker.output()
        assert served(broker, certificates)
    with running_broker(tmp_path, **settings, password_encoder_secret=CANARY) as broker:
        assert PREFIX + "ssl.keystore.password" not in dynamic_settings(broker)
        assert served(broker, certificates)


def dynamic_settings(broker: RunningBroker) -> dict[str, str | None]:
    """What is stored for the broker; passwords have no value."""
    admin = AdminClient({"bootstrap.servers": _open_address(broker)})
    (future,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    return {
        key: entry.value
        for key, entry in future.result(20).items()
        if entry.source == ConfigSource.DYNAMIC_BROKER_CONFIG.value
    }
