"""The example programs, run as a reader would: against our broker, checked by another client."""

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import java_command

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of kafka-python's own imports
    from kafka import KafkaConsumer, TopicPartition

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
COUNT = 100


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    directory = tmp_path_factory.mktemp("broker")
    with running_broker(directory, num_partitions=3, group_initial_rebalance_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex[:8]}"


def run(name: str, *arguments: object) -> str:
    program = str(EXAMPLES / name)
    is_java = name.endswith(".java")  # compiled by Java as it starts
    command = java_command(program) if is_java else [sys.executable, program]
    command += map(str, arguments)
    result = subprocess.run(command, capture_output=True, text=True, timeout=80 if is_java else 50)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def read_all(servers: str, topic: str) -> list[tuple[int, bytes, bytes]]:
    """(partition, key, value) of every committed record, read by kafka-python."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers, isolation_level="read_committed", consumer_timeout_ms=10_000
    )
    partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    ends = consumer.end_offsets(partitions)
    found = []
    while any(consumer.position(p) < ends[p] for p in partitions):
        for records in consumer.poll(1000).values():
            found += [(r.partition, r.key, r.value) for r in records]
    consumer.close()
    return found


def with_java(python: str, java: str) -> pytest.MarkDecorator:
    """The test runs for both programs; Java's client comes with Maven."""
    needs_jars = (pytest.mark.kafka, pytest.mark.timeout(180))
    return pytest.mark.parametrize("program", [python, pytest.param(java, marks=needs_jars)])


@with_java("producer.py", "Producer.java")
def test_producer_writes_every_record_and_keys_stay_together(
    broker: RunningBroker, topic: str, program: str
) -> None:
    assert f"{COUNT} of {COUNT} records written" in run(
        program, broker.bootstrap_servers, topic, COUNT
    )
    found = read_all(broker.bootstrap_servers, topic)
    assert sorted(value for _, _, value in found) == sorted(
        f"order {number}".encode() for number in range(COUNT)
    )
    partitions_of = {key: {p for p, k, _ in found if k == key} for _, key, _ in found}
    assert all(len(partitions) == 1 for partitions in partitions_of.values())


def test_producer_reports_records_that_were_not_written(topic: str) -> None:
    command = [sys.executable, "-c", _IMPATIENT, str(EXAMPLES / "producer.py")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert result.returncode == 1, result.stdout
    assert "0 of 1 records written" in result.stdout
    assert "not written" in result.stderr


_IMPATIENT = """
import sys, pathlib
text = pathlib.Path(sys.argv[1]).read_text().replace("30_000", "1000")
sys.argv = ["producer.py", "127.0.0.1:1", "orders", "1"]
exec(compile(text, "producer.py", "exec"), {"__name__": "__main__"})
"""


@with_java("consumer_group.py", "ConsumerGroup.java")
@pytest.mark.parametrize("guarantee", ["at-least-once", "at-most-once"])
def test_group_continues_where_the_last_process_stopped(
    broker: RunningBroker, topic: str, guarantee: str, program: str
) -> None:
    servers = broker.bootstrap_servers
    run("producer.py", servers, topic, COUNT)
    first = run(program, servers, topic, f"{topic}-group", guarantee, COUNT // 2)
    rest = COUNT - first.count("order ")  # Java's program ends with a whole poll()
    second = run(program, servers, topic, f"{topic}-group", guarantee, rest)
    values = re.findall(r"order \d+", first + second)
    assert sorted(values) == sorted(f"order {number}" for number in range(COUNT))


@pytest.mark.parametrize(
    "program",
    [
        "exactly_once.py",
        "async_exactly_once.py",
        pytest.param("ExactlyOnce.java", marks=(pytest.mark.kafka, pytest.mark.timeout(180))),
    ],
)
def test_results_are_written_exactly_once_by_two_processes_in_turn(
    broker: RunningBroker, topic: str, program: str
) -> None:
    servers, results = broker.bootstrap_servers, f"{topic}-invoices"
    run("producer.py", servers, topic, COUNT)
    words = (program, servers, topic, results, f"{topic}-group", topic)
    first = re.search(r"(\d+) records processed", run(*words, COUNT // 2))
    assert first
    run(*words, COUNT - int(first[1]))
    found = read_all(servers, results)
    assert sorted(value for _, _, value in found) == sorted(
        f"invoice for order {number}".encode() for number in range(COUNT)
    )


@pytest.mark.parametrize("guarantee", ["at-least-once", "at-most-once"])
def test_asyncio_program_reads_what_it_wrote(
    broker: RunningBroker, topic: str, guarantee: str
) -> None:
    output = run("async_client.py", broker.bootstrap_servers, topic, COUNT, guarantee)
    assert f"{COUNT} records read" in output
    assert len(read_all(broker.bootstrap_servers, topic)) == COUNT
