"""Java clients and Kafka's tools with our broker."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import java_command
from tests.txn.clients import Confluent, create_topic, read

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(
        tmp_path_factory.mktemp("broker"),
        transaction_state_log_num_partitions=1,
        offsets_topic_num_partitions=4,
    ) as broker:
        yield broker


@pytest.fixture
def servers(broker: RunningBroker) -> str:
    return broker.bootstrap_servers


def tool(name: str, *args: str, package: str = "org.apache.kafka.tools") -> str:
    """The output of one of Kafka's tools; fails if it fails."""
    command = java_command(f"{package}.{name}", *args)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_java_copies_exactly_once_with_random_aborts(servers: str) -> None:
    create_topic(servers, "in")
    create_topic(servers, "out", partitions=2)
    with closing(Confluent(servers, "fill")) as producer:
        producer.begin()
        for number in range(500):
            producer.send("in", b"%d" % number)
        producer.commit()
    output = tool(
        "TransactionalMessageCopier",
        *("--broker-list", servers, "--transactional-id", "copier"),
        *("--input-topic", "in", "--input-partition", "0", "--output-topic", "out"),
        *("--max-messages", "500", "--transaction-size", "20", "--consumer-group", "copiers"),
        "--enable-random-aborts",
    )
    assert json.loads(output.splitlines()[-1])["stage"] == "ShutdownComplete"
    copied = read(servers, "out", "read_committed", partitions=2)
    assert sorted(copied) == sorted(b"%d" % number for number in range(500))


def test_java_measures_transactions(servers: str) -> None:
    create_topic(servers, "perf", partitions=2)
    tool(
        "ProducerPerformance",
        *("--topic", "perf", "--num-records", "20000", "--record-size", "100"),
        *("--throughput", "-1", "--transactional-id", "perf", "--transaction-duration-ms", "20"),
        *("--producer-props", f"bootstrap.servers={servers}"),
    )
    assert len(read(servers, "perf", "read_committed", partitions=2)) == 20_000


def transactions(servers: str, *args: str) -> list[list[str]]:
    """The table printed by kafka-transactions, without its header."""
    output = tool("TransactionsCommand", "--bootstrap-server", servers, *args)
    return [line.split("\t") for line in output.splitlines()[1:]]


def test_kafka_transactions_lists_and_aborts_an_ongoing_transaction(servers: str) -> None:
    create_topic(servers, "shown")
    with closing(Confluent(servers, "open")) as producer:
        producer.begin()
        producer.send("shown", b"value")
        producer.flush()
        (listed,) = [row for row in transactions(servers, "list") if row[0].strip() == "open"]
        producer_id = listed[2].strip()
        assert listed[3].strip() == "Ongoing"
        (described,) = transactions(servers, "describe", "--transactional-id", "open")
        assert [described[n].strip() for n in (1, 2, 3, 4, 8)] == [
            "open",
            producer_id,
            "0",
            "Ongoing",
            "shown-0",
        ]
        where = ("--topic", "shown", "--partition", "0")
        (writing,) = transactions(servers, "describe-producers", *where)
        assert [writing[n].strip() for n in (0, 1, 5)] == [producer_id, "0", "0"]
        transactions(servers, "abort", *where, "--start-offset", "0")
        (writing,) = transactions(servers, "describe-producers", *where)
        assert writing[5].strip() == "None"
        assert read(servers, "shown", "read_committed") == []


def test_kafka_reads_our_transaction_log(broker: RunningBroker) -> None:
    create_topic(broker.bootstrap_servers, "dumped")
    with closing(Confluent(broker.bootstrap_servers, "dumped")) as producer:
        for end in (producer.commit, producer.abort):
            producer.begin()
            producer.send("dumped", b"value")
            producer.flush()
            end()
        producer.begin()
        producer.send("dumped", b"value")
        producer.commit()  # possible when the previous transaction is complete
    log = broker.log_dir / "__transaction_state-0" / f"{0:020}.log"
    decoded = ("--transaction-log-decoder", "--deep-iteration", "--files", str(log))
    output = tool("DumpLogSegments", *decoded, package="kafka.tools")
    states = re.findall(r"transactionalId=dumped .*state=(\w+),partitions=\[(\S*)\]", output)
    assert states[:7] == [
        ("Empty", ""),
        ("Ongoing", "dumped-0"),
        ("PrepareCommit", "dumped-0"),
        ("CompleteCommit", ""),
        ("Ongoing", "dumped-0"),
        ("PrepareAbort", "dumped-0"),
        ("CompleteAbort", ""),
    ]
