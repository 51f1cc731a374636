"""kill -9 during transactions: committed records exist exactly once, others do not."""

import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from broker.java_strings import partition_for
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.records.batch import iterate_batches
from broker.txn.records import build_transaction_batch
from broker.txn.states import PREPARE_ABORT, PREPARE_COMMIT, TransactionState
from tests.support.batches import assign_offset_and_epoch
from tests.support.broker import RunningBroker, running_broker
from tests.support.processes import free_port
from tests.support.wire import WireClient
from tests.txn.clients import Confluent, Fenced, committed, create_topic, read
from tests.txn.support import stored

TOPIC = "t"
APP = "app"
NUM_PARTITIONS = 4
ROUNDS = 3


@contextmanager
def started(directory: Path, port: int) -> Iterator[RunningBroker]:
    """A broker that may be killed within the block."""
    with running_broker(
        directory,
        listeners=f"PLAINTEXT://127.0.0.1:{port}",
        transaction_state_log_num_partitions=NUM_PARTITIONS,
        offsets_topic_num_partitions=NUM_PARTITIONS,
    ) as broker:
        yield broker


def kill(broker: RunningBroker) -> None:
    broker.server.process.kill()
    broker.server.process.wait()


def state_of(broker: RunningBroker, transactional_id: str) -> str:
    with WireClient(broker.bootstrap_servers) as wire:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (state,) = wire.ask(request, 0).transaction_states
        return str(state.transaction_state)


def decide(log_dir: Path, state: TransactionState) -> None:
    """Append to the transaction log what the coordinator would write last before a crash."""
    partition = partition_for(APP, NUM_PARTITIONS)
    path = log_dir / f"__transaction_state-{partition}" / f"{0:020}.log"
    batches = list(iterate_batches(path.read_bytes()))
    known = stored(batches)[-1].metadata
    assert known is not None
    assert known.state.name == "ONGOING"
    batch = bytearray(
        build_transaction_batch(APP, replace(known, state=state), known.txn_last_update_timestamp)
    )
    last = batches[-1].header
    assign_offset_and_epoch(batch, 0, last.next_offset, last.partition_leader_epoch)
    with path.open("ab") as log:
        log.write(batch)


def test_ongoing_transaction_survives_a_crash_and_is_fenced_by_the_next_producer(
    tmp_path: Path,
) -> None:
    port = free_port()
    with started(tmp_path, port) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        producer = Confluent(broker.bootstrap_servers, APP)
        producer.begin()
        producer.send(TOPIC, b"lost")
        producer.flush()
        kill(broker)
    with started(tmp_path, port) as broker:
        assert state_of(broker, APP) == "Ongoing"
        assert read(broker.bootstrap_servers, TOPIC, "read_committed") == []
        with closing(Confluent(broker.bootstrap_servers, APP)) as heir:
            heir.begin()
            heir.send(TOPIC, b"kept")
            heir.commit()
        assert read(broker.bootstrap_servers, TOPIC, "read_committed") == [b"kept"]
        with pytest.raises(Fenced):
            producer.commit()
        producer.close()


@pytest.mark.parametrize(
    ("state", "values", "offset"), [(PREPARE_COMMIT, [b"value"], 5), (PREPARE_ABORT, [], None)]
)
def test_prepared_transaction_is_completed_after_a_crash(
    tmp_path: Path, state: TransactionState, values: list[bytes], offset: int | None
) -> None:
    port = free_port()
    with started(tmp_path, port) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        with closing(Confluent(broker.bootstrap_servers, APP)) as producer:
            producer.begin()
            producer.send(TOPIC, b"value")
            producer.send_offset(TOPIC, 5, "group")
            producer.flush()
            kill(broker)
    decide(broker.log_dir, state)
    with started(tmp_path, port) as broker, closing(Confluent(broker.bootstrap_servers, APP)):
        # Its InitProducerId is answered after the markers are written.
        assert read(broker.bootstrap_servers, TOPIC, "read_committed") == values
        assert committed(broker.bootstrap_servers, TOPIC, "group") == offset


def run_transactions(
    broker: RunningBroker, numbers: Iterator[int], ended: dict[bytes, bool | None]
) -> None:
    """Run transactions until the broker is killed; None in `ended`: outcome not known."""
    timer = threading.Timer(random.uniform(0.1, 0.8), kill, [broker])
    try:
        with closing(Confluent(broker.bootstrap_servers, APP)) as producer:
            timer.start()
            while True:
                value = b"%d" % next(numbers)
                commit = random.random() < 0.7
                ended[value] = None if commit else False
                producer.begin()
                for partition in range(2):
                    producer.send(TOPIC, value, partition)
                producer.flush(timeout_s=1)
                if commit:
                    producer.commit(timeout_s=1)
                    ended[value] = True
                else:
                    producer.abort(timeout_s=1)
    except (KafkaException, AssertionError):
        timer.join()


@pytest.mark.slow
def test_transactions_are_atomic_across_repeated_kills(
    tmp_path: Path,
) -> None:
    port = free_port()
    numbers = itertools.count()
    ended: dict[bytes, bool | None] = {}
    with started(tmp_path, port) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=2)
    for _ in range(ROUNDS):
        with started(tmp_path, port) as broker:
            run_transactions(broker, numbers, ended)
    with started(tmp_path, port) as broker, closing(Confluent(broker.bootstrap_servers, APP)):
        seen = Counter(read(broker.bootstrap_servers, TOPIC, "read_committed", partitions=2))
    assert all(count == 2 for count in seen.values()), "once in each partition"
    sure = {value for value, outcome in ended.items() if outcome}
    possible = {value for value, outcome in ended.items() if outcome is not False}
    assert len(sure) > ROUNDS
    assert sure <= seen.keys() <= possible
