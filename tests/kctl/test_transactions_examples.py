"""Every example in the help of `kctl transactions` works."""

import shlex
from collections.abc import Iterator

import pytest

from kctl.docs.tree import walk_commands
from tests.support.broker import running_broker
from tests.support.open_transactions import leave_open
from tests.support.streaming import Run, kctl_on
from tests.txn.clients import Confluent

EXAMPLES = [
    example
    for command in walk_commands()
    if command.path[1:2] == ("transactions",)
    for example in command.examples
]
START_OFFSET = 1042


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Broker 0: a transaction hangs on orders:0 from offset 1042 on; payments-1 is at work."""
    directory = tmp_path_factory.mktemp("examples")
    with running_broker(directory, broker_id=0) as broker:
        assert kctl_on(broker)("topics", "create", "orders", "-p", "2").exit_code == 0
    leave_open(broker.log_dir, "orders-0", START_OFFSET)
    with running_broker(directory, broker_id=0) as broker:
        producer = Confluent(broker.bootstrap_servers, "payments-1")
        producer.begin()
        producer.send("orders", b"one", partition=1)
        producer.flush()
        yield kctl_on(broker)
        producer.abort()


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(run: Run, example: str) -> None:
    result = run(*shlex.split(example)[1:])
    found = 3 if " hanging" in example and "--format" not in example else 0
    assert result.exit_code == found, result.stderr
    assert "error" not in result.stderr
