"""`kctl transactions` compared with kafka-transactions, with a hanging transaction."""

import asyncio
import re
from collections.abc import Iterator

import pytest

from broker.model import TopicPartition
from tests.support.kctl import KctlResult, run_kctl
from tests.support.open_transactions import LOST_ID, write_open_transaction
from tests.support.real_kafka import RealKafka, running_kafka
from tests.txn.clients import Confluent

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

TOOL = "org.apache.kafka.tools.TransactionsCommand"


class Both:
    """kctl and Kafka's tool on the same cluster."""

    def __init__(self, kafka: RealKafka) -> None:
        self._kafka = kafka
        self._servers = ["--bootstrap-server", kafka.bootstrap_servers]

    def ours(self, *args: str) -> KctlResult:
        return run_kctl("transactions", *args, *self._servers)

    def theirs(self, *args: str) -> str:
        answer = self._kafka.tool(TOOL, *self._servers, *args)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    settings = {"transaction.partition.verification.enable": "false"}
    with running_kafka(tmp_path_factory.mktemp("txn"), settings=settings) as kafka:
        servers = kafka.bootstrap_servers
        created = run_kctl("topics", "create", "hanging", "orders", "-p", "3", "-b", servers)
        assert created.exit_code == 0
        asyncio.run(write_open_transaction(servers, TopicPartition("hanging", 2)))
        producer = Confluent(servers, "payments")
        producer.begin()
        for partition in range(3):
            producer.send("orders", b"one", partition)
        producer.flush()
        yield Both(kafka)
        producer.abort()


def test_tables_are_kafkas_own(both: Both) -> None:
    kafka = ["--format", "kafka"]
    assert both.ours("list", *kafka).output == both.theirs("list")
    place = ["--topic", "hanging", "--partition", "2"]
    assert both.ours("producers", *place, *kafka).output == both.theirs(
        "describe-producers", *place
    )
    search = ["--topic", "hanging"]
    assert both.ours("hanging", *search, *kafka).output == both.theirs("find-hanging", *search)
    broker = ["--broker-id", "1"]
    assert both.ours("hanging", *broker, *kafka).output == both.theirs("find-hanging", *broker)


def test_description_is_kafkas_but_for_the_time_that_passes(both: Both) -> None:
    one = ["--transactional-id", "payments"]
    ours = both.ours("describe", *one, "--format", "kafka").output
    theirs = both.theirs("describe", *one)
    passes = re.compile(r"(\t\d{13} +)\t\d+ +\t")
    assert passes.sub(r"\1\t…\t", ours) == passes.sub(r"\1\t…\t", theirs)


def test_hanging_transaction_is_found_and_aborted(both: Both) -> None:
    found = both.ours("hanging", "-o", "json")
    assert found.exit_code == 3
    assert [(row["topic"], row["producer_id"]) for row in found.json] == [("hanging", LOST_ID)]
    assert both.ours("abort", "hanging:2", "--start-offset", "0", "--yes").exit_code == 0
    assert both.ours("hanging").exit_code == 0
