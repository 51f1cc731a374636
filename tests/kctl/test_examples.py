"""Every example in the help works, for commands that need only one broker."""

import shlex
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kctl.docs.tree import walk_commands
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import Kctl

NOUNS = (
    *("topics", "configs", "offsets", "delete-records", "log-dirs"),
    *("throttle", "elect-leaders", "replicas", "events"),
)
ELSEWHERE = {
    "kctl replicas list 'orders.*' --regex --broker 2 -o json",  # test_reassign_on_cluster.py
    # test_on_kraft_kafka.py: only KRaft clusters have them.
    "kctl configs alter client-metrics:producers --set interval.ms=60000 --dry-run",
    "kctl events -z localhost:2181/kafka --interval 0.2",  # tests/cluster/test_events.py
}
"""Those that need more than one broker of ours, and the tests that run them."""
EXAMPLES = [
    example
    for command in walk_commands()
    if len(command.path) > 1 and command.path[1] in NOUNS
    for example in command.examples
    if example not in ELSEWHERE
]
FOLLOWING = ("kctl topics watch", "kctl events")
"""Those that follow changes, for a short time here."""
FOUND = {"kctl configs diff topic:orders topic:payments", "kctl configs diff broker:1 brokers"}
"""Those that end with status 3: they found a difference."""


@pytest.fixture(scope="module")
def example_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Broker 1, as the examples have it."""
    with running_broker(tmp_path_factory.mktemp("broker"), broker_id=1) as running:
        yield running


@pytest.fixture
def topics(kctl: Kctl, example_broker: RunningBroker) -> Iterator[dict[str, str]]:
    """The topics the examples speak of, as they are before each; gone afterwards."""
    env = {"KCTL_BOOTSTRAP_SERVERS": example_broker.bootstrap_servers}
    names = ["orders", "orders-old", "payments", "test-1"]
    kctl("topics", "create", *names, "-p", "3", env=env)
    start = [
        ["set", "topic:orders", "retention.ms=1000", "cleanup.policy=delete,compact", "--yes"],
        ["set", "brokers", "log.retention.ms=7200000", "--yes"],
    ]
    for words in start:
        assert kctl("configs", *words, env=env).exit_code == 0
    kctl("topics", "alter", "orders-old", "-c", "retention.ms=5", "--yes", env=env)
    fill(example_broker)
    yield env
    left = kctl("topics", "list", "-o", "name", env=env).output.split()
    kctl("topics", "delete", *left, "--yes", env=env)


def fill(broker: RunningBroker) -> None:
    """Five records a partition. The producer ends here: one that lives makes its topic again."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(15):
        key = str(number).encode()  # compacted topics take no records without one
        producer.produce("orders", b"value", key, partition=number % 3)
    assert producer.flush(10) == 0


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(kctl: Kctl, topics: dict[str, str], example: str) -> None:
    short = ("--for", "300ms", "--interval", "0.1") if example.startswith(FOLLOWING) else ()
    result = kctl(*shlex.split(example)[1:], *short, env=topics)
    expected = 3 if any(example.startswith(start) for start in FOUND) else 0
    assert result.exit_code == expected, result.stderr
    assert "error" not in result.stderr


def test_examples_left_to_other_tests_are_in_the_help() -> None:
    every = {example for command in walk_commands() for example in command.examples}
    assert every >= ELSEWHERE
