"""Unknown keys of client.properties warn; misspelt ones and other files are refused."""

import re
import subprocess
from pathlib import Path

import pytest

from kctl.cli.client_property_names import KAFKA_NAMES
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl, KctlResult
from tests.support.real_kafka import CACHE


@pytest.fixture
def listed(kctl: Kctl, shared_broker: RunningBroker, tmp_path: Path) -> "Listed":
    return Listed(kctl, shared_broker.bootstrap_servers, tmp_path / "client.properties")


class Listed:
    """`kctl brokers list` with a client.properties file."""

    def __init__(self, kctl: Kctl, servers: str, path: Path) -> None:
        self._kctl, self._servers, self.path = kctl, servers, path

    def __call__(self, text: str) -> KctlResult:
        self.path.write_text(text)
        return self._kctl(
            "brokers", "list", "-b", self._servers, "--command-config", str(self.path)
        )


def test_known_keys_of_any_client_are_accepted_in_silence(listed: Listed) -> None:
    result = listed(
        "acks=all\ngroup.id=g\nsecurity.protocol=PLAINTEXT\nsasl.username=u\n"
        "config.providers=env\nconfig.providers.env.class=x\n"
    )
    assert (result.exit_code, result.stderr) == (0, "")


def test_unknown_key_warns(listed: Listed) -> None:
    result = listed("acks=all\nlinger.time=5\n")
    assert result.exit_code == 0
    assert "unknown keys are ignored: linger.time\n" in result.stderr


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("security.protcol", "security.protocol"),
        ("security.protocols", "security.protocol"),
        ("sasl.mechansim", "sasl.mechanism"),
        ("ssl.truststore.locaton", "ssl.truststore.location"),
        ("bootstrap.server", "bootstrap.servers"),
    ],
)
def test_misspelt_key_of_the_connection_is_refused(listed: Listed, key: str, meant: str) -> None:
    result = listed(f"acks=all\n{key}=SASL_SSL\n")
    assert (result.exit_code, f"unknown key {key!r}" in result.stderr) == (2, True)
    assert f"did you mean {meant}?" in result.stderr


def test_other_file_is_refused(listed: Listed) -> None:
    result = listed("#!/bin/sh\necho hello\nexit 1\n")
    assert (result.exit_code, "is not a client.properties file" in result.stderr) == (2, True)
    assert listed("# nothing\n").exit_code == 0


@pytest.mark.kafka
@pytest.mark.usefixtures("real_kafka")
def test_names_are_those_of_kafkas_clients(tmp_path: Path) -> None:
    classes = ("admin.AdminClientConfig", "consumer.ConsumerConfig", "producer.ProducerConfig")
    script = tmp_path / "names.jsh"
    lines = [f"System.out.println(org.apache.kafka.clients.{c}.configNames());" for c in classes]
    script.write_text("\n".join([*lines, "/exit", ""]))
    libraries = ":".join(map(str, (CACHE / "libs").glob("*.jar")))
    command = ["jshell", "--class-path", libraries, str(script)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert set(re.findall(r"[\w.]+", shown.stdout)) == KAFKA_NAMES
