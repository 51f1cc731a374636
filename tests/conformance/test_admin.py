"""Every admin request in every version gets the recorded response of Apache Kafka.

Where we differ on purpose there is no conversation: Metadata that creates a topic answers when the
topic is there (Kafka says LEADER_NOT_AVAILABLE and lets the client ask again); partitions whose
replicas are all dead are shown without a leader (Kafka does not show them, and an election of
theirs kills the request).
"""

from collections.abc import Iterator

import pytest

from tests.conformance.admin_answers import CASES, IDS, Answers, read_answers
from tests.conformance.exchange import Exchange, talk
from tests.support.broker import RunningBroker, running_broker


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Our broker, with the id that the real one had."""
    with running_broker(tmp_path_factory.mktemp("ours"), broker_id=1) as running:
        yield running


@pytest.fixture(scope="module")
def recorded() -> Answers:
    """The responses of Apache Kafka."""
    return read_answers()


@pytest.mark.parametrize(("exchange", "version"), CASES, ids=IDS)
def test_answers_are_those_that_kafka_gave(
    ours: RunningBroker, recorded: Answers, exchange: Exchange, version: int
) -> None:
    answers = talk(exchange, version, ours.bootstrap_servers)
    expected = recorded[exchange.name, version]
    for number, (answer, wanted) in enumerate(zip(answers, expected, strict=True)):
        assert answer == wanted, f"answer {number}"
