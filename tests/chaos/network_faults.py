"""Faults of the network: each function causes one, and returns when it is over.

A broker that is cut off from the others can still be reached by clients, so that it serves as a
zombie until it notices; and a cut may be one-way, so that requests arrive but no responses.
"""

from tests.chaos.faults import Fault
from tests.chaos.network import BROKERS, ZOOKEEPER, Network
from tests.chaos.stage import SESSION_S, Stage
from tests.chaos.switch import HERE


def _network(stage: Stage) -> Network:
    assert stage.network is not None
    return stage.network


def _cut(stage: Stage, pairs: list[tuple[str, str]]) -> None:
    _network(stage).cut(pairs)
    stage.linger(3 * SESSION_S)
    _network(stage).heal()


def _both_ways(host: str, others: list[str]) -> list[tuple[str, str]]:
    return [pair for other in others for pair in ((host, other), (other, host))]


def isolate_broker(stage: Stage) -> None:
    """A broker is cut off from the other brokers, but not from ZooKeeper and clients."""
    host = stage.random.choice(BROKERS)
    _cut(stage, _both_ways(host, [name for name in BROKERS if name != host]))


def isolate_broker_and_session(stage: Stage) -> None:
    """A broker is cut off from the other brokers and ZooKeeper, but not from clients."""
    host = stage.random.choice(BROKERS)
    _cut(stage, _both_ways(host, [ZOOKEEPER, *(name for name in BROKERS if name != host)]))


def isolate_host(stage: Stage) -> None:
    """A broker is cut off from everything."""
    host = stage.random.choice(BROKERS)
    _cut(stage, _both_ways(host, [name for name in (*BROKERS, ZOOKEEPER, HERE) if name != host]))


def cut_pair(stage: Stage) -> None:
    """Two brokers are cut off from each other, while the third reaches both."""
    one, other = stage.random.sample(BROKERS, 2)
    _cut(stage, _both_ways(one, [other]))


def cut_one_way(stage: Stage) -> None:
    """Packets from one broker to another are lost; those the other way arrive."""
    source, target = stage.random.sample(BROKERS, 2)
    _cut(stage, [(source, target)])


def cut_zookeeper_one_way(stage: Stage) -> None:
    """Packets between a broker and ZooKeeper are lost in one direction."""
    pair = (stage.random.choice(BROKERS), ZOOKEEPER)
    _cut(stage, [pair if stage.random.random() < 0.5 else pair[::-1]])


def lose_packets(stage: Stage) -> None:
    """One packet in twenty is lost, everywhere."""
    _network(stage).lose(0.05)
    stage.linger(4 * SESSION_S)
    _network(stage).heal()


def slow_link(stage: Stage) -> None:
    """Packets to and from a broker are late."""
    _network(stage).slow_down(stage.random.choice(BROKERS), stage.random.choice((0.05, 0.3)))
    stage.linger(3 * SESSION_S)
    _network(stage).heal()


ALL: tuple[Fault, ...] = (
    isolate_broker,
    isolate_broker_and_session,
    isolate_host,
    cut_pair,
    cut_one_way,
    cut_zookeeper_one_way,
    lose_packets,
    slow_link,
)
