"""kctl proves its identity by a certificate from PEM, PKCS12 or JKS, and has the ACLs of its name.

The stores were written by keytool and openssl (tests/golden/keystores); the broker trusts their
certificate, which is self-signed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.broker import running_broker
from tests.support.certificates import Authority
from tests.support.kctl import KctlResult, run_kctl
from tests.support.processes import free_port

STORES = Path(__file__).parents[1] / "golden" / "keystores"
PRINCIPAL = "User:1.2.840.113549.1.9.1=#16056140622e63,CN=localhost,OU=x,O=Acme\\, Inc.,C=DE"


@dataclass(frozen=True)
class Listening:
    """A broker that requires client certificates on its TLS listener."""

    plaintext: str
    tls: str
    directory: Path

    def kctl(self, *words: str, **store: str) -> KctlResult:
        """Run kctl through TLS with this key store."""
        path = self.directory / "client.properties"
        settings = {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(self.directory / "authority.pem"),
            **{name.replace("_", "."): value for name, value in store.items()},
        }
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return run_kctl(*words, "-b", self.tls, "--command-config", str(path))


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    directory = tmp_path_factory.mktemp("mutual")
    authority = Authority()
    (directory / "authority.pem").write_text(authority.certificate)
    (directory / "broker.pem").write_text(authority.certificate_for("localhost").pem)
    port = free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SSL://localhost:{port}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": directory / "broker.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": STORES / "own.pem",
        "ssl.client.auth": "required",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with running_broker(directory, **settings) as broker:
        yield Listening(broker.bootstrap_servers, f"localhost:{port}", directory)


@pytest.mark.parametrize(
    ("name", "passwords"),
    [
        ("keytool.p12", {"ssl_keystore_password": "storepass"}),
        ("keytool-legacy.p12", {"ssl_keystore_password": "storepass"}),
        ("openssl.p12", {"ssl_keystore_password": "storepass"}),
        ("keytool.jks", {"ssl_keystore_password": "storepass", "ssl_key_password": "keypass1"}),
    ],
)
def test_certificate_of_a_store_is_accepted(
    listening: Listening, name: str, passwords: dict[str, str]
) -> None:
    store = {"ssl_keystore_location": str(STORES / name), **passwords}
    result = listening.kctl("brokers", "list", "-o", "name", **store)
    assert result.exit_code == 0, result.stderr


def test_client_without_certificate_gets_a_clear_error(listening: Listening) -> None:
    result = listening.kctl("brokers", "list")
    assert result.exit_code == 1
    assert "requires a client certificate" in result.stderr


def test_acls_for_the_name_of_the_certificate_apply_to_both_clients(listening: Listening) -> None:
    inline = listening.directory / "own.pem"
    inline.write_text((STORES / "own.pem").read_text() + (STORES / "key.pem").read_text())
    store = {"ssl_keystore_location": str(inline)}
    as_super = ("-b", listening.plaintext)
    assert run_kctl("topics", "create", "orders", *as_super).exit_code == 0
    for words in (("consume", "orders", "--exit"), ("topics", "describe", "orders")):
        denied = listening.kctl(*words, **store)
        assert denied.exit_code == 1
        assert "topic orders (TOPIC_AUTHORIZATION_FAILED)" in denied.stderr
        assert "kctl acls explain" in denied.stderr
    add = ("acls", "add", "topic:orders", "--allow", PRINCIPAL)
    assert run_kctl(*add, *as_super).exit_code == 0
    assert listening.kctl("consume", "orders", "--exit", **store).exit_code == 0
    described = listening.kctl("topics", "describe", "orders", **store)
    assert described.exit_code == 0, described.stderr
