"""`kctl transactions` on our broker, with a hanging transaction."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.model import TopicPartition
from kctl.commands.transactions.describe import HangingSearch
from kctl.model.transactions import ActiveProducer, Transaction, TransactionListing
from kctl.plans.hanging import hanging, overdue
from kctl.views.kafka_text.transactions import (
    describe_lines,
    hanging_lines,
    list_lines,
    producers_lines,
)
from tests.support.broker import running_broker
from tests.support.golden_tools import TOOLS, golden_tool
from tests.support.open_transactions import LOST_ID, leave_open
from tests.support.streaming import Run, kctl_on
from tests.txn.clients import Confluent


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A broker with `hanging`, whose partition 1 has a transaction from a producer long gone."""
    directory = tmp_path_factory.mktemp("transactions")
    with running_broker(directory) as broker:
        assert kctl_on(broker)("topics", "create", "hanging", "-p", "2").exit_code == 0
        assert kctl_on(broker)("topics", "create", "orders", "-p", "2").exit_code == 0
    leave_open(broker.log_dir, "hanging-1", producer_epoch=7)
    with running_broker(directory) as broker:
        producer = Confluent(broker.bootstrap_servers, "payments")
        producer.begin()
        producer.send("orders", b"one", partition=1)
        producer.flush()
        yield kctl_on(broker)
        producer.abort()


def test_transactions_are_listed_with_their_state(run: Run) -> None:
    [row] = run("transactions", "list", "-o", "json").json
    assert (row["transactional_id"], row["state"]) == ("payments", "Ongoing")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--state", "Ongoing"], "payments\n"),
        (["--state", "CompleteCommit"], ""),
        (["--producer-id", str(LOST_ID)], ""),
        (["--longer-than", "1h"], ""),
        (["--duration-filter", "0"], "payments\n"),
    ],
)
def test_filters_leave_out_the_others(run: Run, options: list[str], expected: str) -> None:
    assert run("transactions", "list", *options, "-o", "name").output == expected


def test_state_that_does_not_exist_is_refused(run: Run) -> None:
    result = run("transactions", "list", "--state", "Sleeping")
    assert (result.exit_code, "'Sleeping'" in result.stderr) == (2, True)
    assert run("transactions", "list", "--state", "ongoing").exit_code == 0


@pytest.mark.parametrize("which", [["payments"], ["--transactional-id", "payments"], ["--all"]])
def test_open_transaction_is_described_with_its_partitions(run: Run, which: list[str]) -> None:
    [row] = run("transactions", "describe", *which, "-o", "json").json
    assert row["partitions"] == ["orders-1"]
    assert row["state"] == "Ongoing"
    assert row["duration_ms"] >= 0


def test_unknown_transactional_id_is_reported(run: Run) -> None:
    result = run("transactions", "describe", "unknown")
    assert result.exit_code == 1
    assert "no such transactional id: 'unknown'" in result.stderr


def test_describing_nothing_is_a_usage_error(run: Run) -> None:
    assert run("transactions", "describe").exit_code == 2


@pytest.mark.parametrize(
    "which", [["hanging:1"], ["hanging"], ["--topic", "hanging", "--partition", "1"]]
)
def test_producers_of_partitions_are_shown_with_their_open_transactions(
    run: Run, which: list[str]
) -> None:
    [row] = run("transactions", "producers", *which, "-o", "json").json
    assert (row["producer_id"], row["producer_epoch"], row["start_offset"]) == (LOST_ID, 7, 0)


def test_only_transactions_unknown_to_the_coordinator_hang(run: Run) -> None:
    result = run("transactions", "hanging", "-o", "json")
    assert result.exit_code == 3
    [row] = result.json
    assert (row["topic"], row["partition"], row["producer_id"]) == ("hanging", 1, LOST_ID)


@pytest.mark.parametrize("where", [["orders"], ["hanging:0"], ["--max-transaction-timeout", "90"]])
def test_no_transaction_hangs_before_the_timeout(run: Run, where: list[str]) -> None:
    result = run("transactions", "hanging", *where)
    assert result.exit_code == 0
    assert "no hanging transactions" in result.stderr


def test_search_for_a_topic_that_does_not_exist_fails(run: Run) -> None:
    assert "no such topic: 'nowhere'" in run("transactions", "hanging", "nowhere").stderr


@pytest.mark.parametrize("option", [["--dry-run"], []])
def test_nothing_is_aborted_without_a_yes(run: Run, option: list[str]) -> None:
    result = run("transactions", "abort", "hanging:1", "--start-offset", "0", *option)
    assert result.exit_code == (0 if option else 1)
    assert str(LOST_ID) in result.output + result.stderr
    assert run("transactions", "hanging").exit_code == 3


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (
            ["hanging:1", "--start-offset", "5", "--yes"],
            1,
            "no open transaction starts at offset 5",
        ),
        (["hanging:1", "--yes"], 2, "no transaction specified"),
        (["hanging:1", "--producer-id", "1", "--yes"], 2, "no transaction specified"),
        (["hanging", "--start-offset", "0", "--yes"], 2, "specify one partition"),
        (["hanging:x", "--start-offset", "0", "--yes"], 2, "is not TOPIC"),
    ],
)
def test_abort_without_a_transaction_is_refused(
    run: Run, args: list[str], status: int, words: str
) -> None:
    result = run("transactions", "abort", *args)
    assert result.exit_code == status
    assert words in result.stderr


def test_aborted_transaction_is_no_longer_hanging(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        assert kctl_on(broker)("topics", "create", "t").exit_code == 0
    leave_open(broker.log_dir, "t-0", producer_epoch=7)
    with running_broker(tmp_path) as broker:
        run = kctl_on(broker)
        assert run("transactions", "hanging").exit_code == 3
        wrong = ["--producer-id", str(LOST_ID), "--producer-epoch", "3", "--coordinator-epoch", "0"]
        fenced = run("transactions", "abort", "t:0", *wrong, "--yes")
        assert fenced.exit_code == 1
        assert "INVALID_PRODUCER_EPOCH" in fenced.stderr
        done = run("transactions", "abort", "t:0", "--start-offset", "0", "--yes")
        assert done.exit_code == 0, done.stderr
        assert run("transactions", "hanging").exit_code == 0


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ([], ""),
        (["-X", "isolation.level=read_uncommitted"], "one\n"),
        (["--consumer-property", "isolation.level=read_uncommitted"], "one\n"),
        (["--isolation-level", "read_uncommitted"], "one\n"),
        (["-X", "isolation.level=read_uncommitted", "-X", "isolation.level=read_committed"], ""),
    ],
)
def test_isolation_level_of_a_property_applies_to_the_end_of_the_log_too(
    run: Run, option: list[str], expected: str
) -> None:
    assert run("consume", "orders", "--exit", *option).output == expected
    assert run("consume", "orders", "--last", "1", *option).output == expected


def test_unknown_isolation_level_is_a_usage_error(run: Run) -> None:
    result = run("consume", "orders", "--exit", "-X", "isolation.level=snapshot")
    assert (result.exit_code, "no such isolation level" in result.stderr) == (2, True)


PLACE = TopicPartition("orders", 3)
PRODUCER = ActiveProducer(PLACE, 1000, 2, -1, 7, 1_000_000, 55)


def known(*partitions: TopicPartition) -> dict[int, Transaction]:
    return {1000: Transaction("id", 1, 1000, 2, "Ongoing", 60_000, 1, partitions)}


def test_transaction_that_a_silent_coordinator_may_know_is_not_called_hanging() -> None:
    unknown = HangingSearch([PRODUCER], known_ids=set(), coordinators={1, 2}, leaderless=[])
    assert unknown.result(silent={2}) == ([], [PRODUCER])
    assert unknown.result(silent={3}) == ([PRODUCER], [])
    known_elsewhere = replace(unknown, known_ids={PRODUCER.producer_id})
    assert known_elsewhere.result(silent={2}) == ([PRODUCER], [])


def test_transaction_that_its_coordinator_will_end_does_not_hang() -> None:
    assert hanging([PRODUCER], known(PLACE)) == []
    assert hanging([PRODUCER], known(TopicPartition("orders", 4))) == [PRODUCER]
    assert hanging([PRODUCER], {}) == [PRODUCER]


def test_producer_without_an_open_transaction_is_never_overdue() -> None:
    idle = ActiveProducer(PLACE, 1, 0, -1, 0, 0, None)
    assert overdue([idle, PRODUCER], 1_000_101, 100) == [PRODUCER]
    assert overdue([PRODUCER], 1_000_100, 100) == []


def golden(name: str) -> list[str]:
    """These runs were written down without their command and status."""
    [path] = TOOLS.glob(f"{name}*.txt")
    return path.read_text().splitlines()


def test_text_of_each_table_equals_kafkas_tool() -> None:
    assert list_lines([]) == golden_tool("52-").lines
    listing = TransactionListing("cap-1", 2, 1000, "CompleteCommit")
    assert list_lines([listing]) == golden("60-")
    started_ms = 1_794_789_069_369
    done = Transaction("cap-1", 2, 1000, 0, "CompleteCommit", 60_000, started_ms, ())
    assert describe_lines(done, started_ms + 11_463) == golden("61-")
    producer = ActiveProducer(PLACE, 0, 0, -1, 1403, 1_794_788_960_268, None)
    assert producers_lines([producer]) == golden("62-")


def test_hanging_ones_are_grouped_by_producer_in_the_order_of_a_java_map() -> None:
    others = [ActiveProducer(PLACE, number, 0, -1, 0, 0, 1) for number in (17, 16, 2)]
    lines = hanging_lines([*others, others[0]], 120_000)
    assert [line.split("\t")[2].strip() for line in lines[1:]] == ["16", "17", "17", "2"]
    assert lines[1].split("\t")[-2].strip() == "2"
