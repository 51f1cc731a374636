"""Clusters with TLS: tasks authenticate like the driver, and secrets are not written anywhere."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.model import TopicPartition
from kctl.cli.security.settings import read_security
from kctl.spark.data_source import Request, read_batches
from kctl.spark.data_source.reading import tasks_of
from kctl.spark.decoding.columns import DEFAULT_COLUMNS
from kctl.spark.planning.plan import Piece
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.reading.pieces import piece_tables
from tests.spark.support import exported
from tests.support.certificates import Authority
from tests.support.kctl import Kctl, run_kctl
from tests.support.tls_front import running_tls_broker

PASSWORD = "open-sesame"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "alice",
    "sasl.password": PASSWORD,
}


@dataclass(frozen=True)
class Safe:
    """A topic `orders` with a record, behind TLS."""

    address: str
    properties: dict[str, str]
    config: Path


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Safe]:
    directory = tmp_path_factory.mktemp("tls")
    authority = Authority()
    trusted = directory / "authority.pem"
    trusted.write_text(authority.certificate)
    properties = {"security.protocol": "SSL", "ssl.truststore.location": str(trusted)}
    config = directory / "client.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    with running_tls_broker(directory, authority.certificate_for("localhost")) as (address, _):
        shared = ("-b", address, "--command-config", str(config))
        assert run_kctl("topics", "create", "orders", *shared).exit_code == 0
        assert run_kctl("produce", "orders", *shared, stdin="one\n").exit_code == 0
        yield Safe(address, properties, config)


def _no_answer(what: str) -> None:
    """There is no terminal to ask for a password."""


def test_task_reads_through_tls_with_the_settings_of_the_driver(safe: Safe) -> None:
    settings = TaskSettings(
        "", bootstrap_servers=safe.address, security=read_security(safe.properties, _no_answer)
    )
    sent: TaskSettings = pickle.loads(pickle.dumps(settings))  # noqa: S301 - our own bytes
    ((table, _),) = piece_tables(Piece("orders", 0, 0, 1, 10), sent, DEFAULT_COLUMNS)
    assert table.column("value").to_pylist() == [b"one"]


def test_data_source_reads_client_properties(safe: Safe) -> None:
    options = {
        "topics": "orders",
        "bootstrap.servers": safe.address,
        "command.config": str(safe.config),
    }
    request = Request(options)
    with request.source() as source:
        ranges = source.whole_ranges([TopicPartition("orders", 0)], is_committed=True)
        (each,) = tasks_of(request, source, ranges)
    (batch,) = read_batches(each, request.settings, ["value"])
    assert batch.column("value").to_pylist() == [b"one"]


def test_secrets_are_not_in_plans_or_reprs() -> None:
    settings = TaskSettings("", bootstrap_servers="a:1", security=read_security(LOGIN, _no_answer))
    assert PASSWORD not in json.dumps(settings.to_json())
    assert PASSWORD not in repr(settings)
    assert TaskSettings.from_json(settings.to_json()).security is None


@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("spark")
def test_cluster_behind_tls_is_exported_and_verified(
    kctl: Kctl, safe: Safe, tmp_path: Path
) -> None:
    shared = ("-b", safe.address, "--command-config", str(safe.config))
    result = kctl("spark-export", "orders", *shared, "--to", str(tmp_path / "out"))
    assert result.exit_code == 0, result.stderr
    assert [row["value"] for row in exported(tmp_path / "out")] == [b"one"]
    manifest = (tmp_path / "out" / "export=00001" / "_manifest.json").read_text()
    assert "BEGIN CERTIFICATE" not in manifest
    checked = kctl("spark-export", "verify", str(tmp_path / "out"), *shared)
    assert checked.exit_code == 0, checked.output
