"""Every example in the help of `kctl transactions` works, on a broker where they make sense."""

import shlex
import time
from collections.abc import Iterator

import pytest

from broker.log.layout import CLEAN_SHUTDOWN_FILE
from broker.records.builder import BatchSettings, build_batch
from kctl.docs.tree import walk_commands
from tests.support.broker import running_broker
from tests.support.streaming import Run, kctl_on
from tests.txn.clients import Confluent

EXAMPLES = [
    example
    for command in walk_commands()
    if command.path[1:2] == ("transactions",)
    for example in command.examples
]
START_OFFSET = 1042
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Broker 0: a transaction hangs on orders:0 from offset 1042 on; payments-1 is at work."""
    directory = tmp_path_factory.mktemp("examples")
    with running_broker(directory, broker_id=0) as broker:
        assert kctl_on(broker)("topics", "create", "orders", "-p", "2").exit_code == 0
    settings = BatchSettings(
        producer_id=4242, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    written_ms = time.time_ns() // 1_000_000 - DAY_MS
    batch = build_batch([(START_OFFSET, written_ms, None, b"lost", ())], settings)
    partition = broker.log_dir / "orders-0"
    for path in partition.glob("0*"):
        path.unlink()
    (partition / f"{START_OFFSET:020}.log").write_bytes(batch)
    (broker.log_dir / CLEAN_SHUTDOWN_FILE).unlink()
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
