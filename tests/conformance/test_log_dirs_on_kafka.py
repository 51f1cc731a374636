"""Replicas move between two log directories of Apache Kafka and of ours, and look the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.conformance.admin_cluster import replicas_that_move
from tests.conformance.exchange import Exchange, talk
from tests.support.broker import running_broker
from tests.support.real_kafka import running_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


def _dirs(directory: Path) -> str:
    return f"{directory / 'first'},{directory / 'second'}"


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Kafka's address and ours, both with two log directories."""
    theirs, our_own = tmp_path_factory.mktemp("kafka"), tmp_path_factory.mktemp("ours")
    with (
        running_kafka(theirs, settings={"log.dirs": _dirs(theirs)}) as kafka,
        running_broker(our_own, broker_id=1, log_dirs=_dirs(our_own)) as ours,
    ):
        yield kafka.brokers[0], ours.bootstrap_servers


@pytest.mark.parametrize(
    ("exchange", "version"),
    [
        case
        for api in (AlterReplicaLogDirsRequest, DescribeLogDirsRequest)
        for case in Exchange(api, replicas_that_move).cases()
    ],
    ids=lambda value: str(value) if isinstance(value, int) else value.api.__name__,
)
def test_replica_moves_as_in_kafka(
    brokers: tuple[str, str], exchange: Exchange, version: int
) -> None:
    kafka, ours = brokers
    assert talk(exchange, version, ours) == talk(exchange, version, kafka)
