"""Every admin call, in every version, answered by us as by Apache Kafka."""

from collections.abc import Iterator

import pytest

from tests.conformance import admin_cluster, admin_offsets, admin_topics
from tests.conformance.exchange import Exchange, talk
from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

EXCHANGES = [*admin_topics.EXCHANGES, *admin_offsets.EXCHANGES, *admin_cluster.EXCHANGES]
CASES = [
    pytest.param(exchange, version, id=f"{exchange.name}-v{version}")
    for exchange in EXCHANGES
    for exchange, version in exchange.cases()
]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Our broker under the id that the real one has."""
    with running_broker(tmp_path_factory.mktemp("ours"), broker_id=1) as running:
        yield running


@pytest.mark.parametrize(("exchange", "version"), CASES)
def test_answers_are_those_of_kafka(
    real_kafka: RealKafka, ours: RunningBroker, exchange: Exchange, version: int
) -> None:
    expected = talk(exchange, version, real_kafka.brokers[0])
    answers = talk(exchange, version, ours.bootstrap_servers)
    for number, (answer, wanted) in enumerate(zip(answers, expected, strict=True)):
        assert answer == wanted, f"answer {number}"
