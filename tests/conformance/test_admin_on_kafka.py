"""Every admin request in every version: the same response from Apache Kafka and from us."""

from collections.abc import Iterator

import pytest

from tests.conformance.admin_answers import CASES, IDS, Answers, read_answers, write_answers
from tests.conformance.exchange import Exchange, talk
from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Our broker, with the id that the real one has."""
    with running_broker(tmp_path_factory.mktemp("ours"), broker_id=1) as running:
        yield running


@pytest.fixture(scope="module")
def answers_of_kafka(pytestconfig: pytest.Config) -> Iterator[Answers]:
    """The responses of Kafka; with --rewrite they are recorded."""
    answers: Answers = {}
    yield answers
    if pytestconfig.getoption("rewrite"):
        write_answers(answers)


@pytest.mark.parametrize(("exchange", "version"), CASES, ids=IDS)
def test_answers_are_those_of_kafka(
    real_kafka: RealKafka,
    ours: RunningBroker,
    answers_of_kafka: Answers,
    exchange: Exchange,
    version: int,
) -> None:
    expected = talk(exchange, version, real_kafka.brokers[0])
    answers_of_kafka[exchange.name, version] = expected
    answers = talk(exchange, version, ours.bootstrap_servers)
    for number, (answer, wanted) in enumerate(zip(answers, expected, strict=True)):
        assert answer == wanted, f"answer {number}"


def test_record_is_what_kafka_answers(
    answers_of_kafka: Answers, pytestconfig: pytest.Config
) -> None:
    if not pytestconfig.getoption("rewrite"):
        assert answers_of_kafka == read_answers()
