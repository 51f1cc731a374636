"""TLS in front of our broker: accepted and refused clients."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.kctl import Kctl, KctlResult
from tests.support.tls_front import running_tls_broker

LOGIN = {
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "alice",
    "sasl.password": "open-sesame",
}


@dataclass(frozen=True)
class Setting:
    """A broker with and without TLS, and the authority of its certificate."""

    tls: str
    plaintext: str
    authority: Authority
    directory: Path

    def trusting(self, **more: str) -> dict[str, str]:
        """Settings for TLS that trust the authority."""
        path = self.directory / "authority.pem"
        path.write_text(self.authority.certificate)
        return {"security.protocol": "SSL", "ssl.truststore.location": str(path), **more}

    def run(self, kctl: Kctl, address: str, properties: dict[str, str], *args: str) -> KctlResult:
        """Run kctl with these client.properties, saying as much as it can."""
        path = self.directory / "client.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return kctl(*args, "-b", address, "--command-config", str(path), "-vv")


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    directory = tmp_path_factory.mktemp("tls")
    authority = Authority()
    with running_tls_broker(directory, authority.certificate_for("localhost")) as (tls, plaintext):
        yield Setting(tls, plaintext, authority, directory)


def test_brokers_are_queried_through_tls(kctl: Kctl, setting: Setting) -> None:
    result = setting.run(kctl, setting.tls, setting.trusting(), "brokers", "list", "-o", "name")
    assert result.exit_code == 0, result.stderr


def test_settings_may_come_from_the_environment_alone(kctl: Kctl, setting: Setting) -> None:
    trusted = setting.trusting()["ssl.truststore.location"]
    environment = {"KCTL_SECURITY_PROTOCOL": "ssl", "KCTL_SSL_TRUSTSTORE_LOCATION": trusted}
    assert kctl("brokers", "list", "-b", setting.tls, env=environment).exit_code == 0


def test_records_go_through_tls_both_ways(kctl: Kctl, setting: Setting) -> None:
    path = setting.directory / "stream.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in setting.trusting().items()))
    shared = ["-b", setting.tls, "--command-config", str(path)]
    assert kctl("topics", "create", "safe", *shared).exit_code == 0
    assert kctl("produce", "safe", *shared, stdin="one\n").exit_code == 0
    assert kctl("consume", "safe", "--exit", *shared).output == "one\n"


@pytest.mark.parametrize(
    ("protocol", "where", "words", "hint"),
    [
        ("SSL", "plaintext", "it seems to be a plaintext listener", "security.protocol=PLAINTEXT"),
        ("PLAINTEXT", "tls", "TLS", ""),
        ("SASL_SSL", "tls", "has no SASL on this listener", "security.protocol=PLAINTEXT or SSL"),
        ("SASL_PLAINTEXT", "plaintext", "has no SASL on this listener", "or a SASL listener"),
    ],
)
def test_listener_of_another_kind_is_recognised(
    kctl: Kctl, setting: Setting, protocol: str, where: str, words: str, hint: str
) -> None:
    properties = setting.trusting() | LOGIN | {"security.protocol": protocol}
    address = setting.tls if where == "tls" else setting.plaintext
    result = setting.run(kctl, address, properties, "brokers", "list")
    assert result.exit_code == 1
    assert words in result.stderr and hint in result.stderr
    assert "open-sesame" not in result.stderr


def test_certificate_of_a_strange_authority_is_not_trusted(kctl: Kctl, setting: Setting) -> None:
    stranger = setting.directory / "stranger.pem"
    stranger.write_text(Authority("stranger").certificate)
    properties = setting.trusting() | {"ssl.truststore.location": str(stranger)}
    result = setting.run(kctl, setting.tls, properties, "brokers", "list")
    assert result.exit_code == 1
    assert "not trusted" in result.stderr and "ssl.truststore.location" in result.stderr


def test_certificate_for_another_name_is_refused_unless_that_is_not_checked(
    kctl: Kctl, setting: Setting
) -> None:
    address = setting.tls.replace("localhost", "127.0.0.1")
    refused = setting.run(kctl, address, setting.trusting(), "brokers", "list")
    assert refused.exit_code == 1
    assert "certificate for another name" in refused.stderr
    unchecked = setting.trusting() | {"ssl.endpoint.identification.algorithm": ""}
    assert setting.run(kctl, address, unchecked, "brokers", "list").exit_code == 0
