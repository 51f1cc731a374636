"""The fixture `broker`: a real process that answers, and ends when it is asked to."""

from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl


def test_broker_answers_as_soon_as_the_fixture_has_it(kctl: Kctl, broker: RunningBroker) -> None:
    assert kctl("brokers", "list", "-b", broker.bootstrap_servers).exit_code == 0


def test_broker_asked_to_end_closes_in_order(broker: RunningBroker) -> None:
    assert broker.server.stop() == 0
    assert "stopped" in broker.output()
    assert "Traceback" not in broker.output()
