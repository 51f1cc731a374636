"""`kctl verify`: numbered records, beside Kafka's verifiable producer and consumer."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.model.numbered import MAX_NUMBER, Numbered
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import Kctl, run_kctl
from tests.support.kraft_kafka import KraftKafka
from tests.support.real_kafka import RealKafka

PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
PLACE = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of ours whose groups start at once."""
    settings = {"group_initial_rebalance_delay_ms": 0}
    with running_broker(tmp_path_factory.mktemp("verify"), **settings) as broker:
        yield broker.bootstrap_servers


def _topic(servers: str, name: str) -> str:
    assert run_kctl("-b", servers, "topics", "create", name, "-p", "3").exit_code == 0
    return name


def _events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(0, 70))
def test_gaps_and_duplicates_are_those_of_the_numbers(numbers: list[int], sent: int) -> None:
    found = Numbered()
    for number in numbers:
        found.add(PLACE, str(number).encode())
    found.expect(sent)
    total = max([sent, *(number + 1 for number in numbers)], default=0)
    (sequence,) = found.sequences.values()
    missing = sorted(set(range(total)) - set(numbers))
    assert sequence.missing == len(missing)
    assert [n for first, last in sequence.gaps() for n in range(first, last + 1)] == missing
    assert sequence.duplicates == len(numbers) - len(set(numbers))
    assert list(sequence.repeated()) == sorted({n for n in numbers if numbers.count(n) > 1})
    assert found.is_exact == (not missing and len(numbers) == len(set(numbers)))


def test_values_that_are_not_numbers_are_foreign() -> None:
    found = Numbered()
    for value in (b"", None, b"x", b"-1", b"1.", str(MAX_NUMBER).encode(), b"1 "):
        found.add(PLACE, value)
    assert (found.foreign, found.sequences) == (7, {})


def test_lower_number_in_the_same_partition_is_out_of_order() -> None:
    found = Numbered()
    for partition, value in ((0, b"a.1"), (1, b"a.0"), (0, b"b.0"), (0, b"a.2"), (0, b"a.0")):
        found.add(TopicPartition("t", partition), value)
    assert found.out_of_order == 1


def test_all_records_written_are_found_exactly_once(kctl: Kctl, servers: str) -> None:
    topic = _topic(servers, "exact")
    for prefix in ("1", "2"):
        words = ("verify", "produce", topic, "-n", "500", "--value-prefix", prefix, "-o", "json")
        written = kctl("-b", servers, *words)
        assert written.exit_code == 0, written.stderr
        assert (written.json["sent"], written.json["acked"], written.json["failed"]) == (
            500,
            500,
            0,
        )
    result = kctl("-b", servers, "verify", "consume", topic, "--expect", "500", "-o", "json")
    assert result.exit_code == 0, result.stderr
    report = result.json
    assert (report["result"], report["records"], report["distinct"]) == ("exact", 1000, 1000)
    assert report["gaps"] == report["repeated"] == []
    assert sum(report["partitions"].values()) == 1000


def test_lost_duplicate_and_foreign_records_are_found(kctl: Kctl, servers: str) -> None:
    topic = _topic(servers, "inexact")
    lines = "".join(f"{number}\n" for number in (0, 1, 2, 5, 6, 8, 8, "x"))
    assert kctl("-b", servers, "produce", topic, stdin=lines).exit_code == 0
    result = kctl("-b", servers, "verify", "consume", topic, "--expect", "11", "-o", "json")
    assert result.exit_code == 3
    report = result.json
    assert report["gaps"] == ["3-4", "7", "9-10"]
    assert report["repeated"] == ["8"]
    assert (report["missing"], report["duplicates"], report["foreign"]) == (5, 1, 1)
    assert report["result"] == "not exact"


def test_empty_topic_lacks_everything_that_is_expected(kctl: Kctl, servers: str) -> None:
    topic = _topic(servers, "empty")
    result = kctl("-b", servers, "verify", "consume", topic, "--expect", "3", "-o", "json")
    assert (result.exit_code, result.json["gaps"]) == (3, ["0-2"])
    assert kctl("-b", servers, "verify", "consume", topic).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("produce", "specify one topic"),
        ("produce nope -n 1", "nope"),
        ("consume nope", "nope"),
        ("consume bad --group g", "--group needs --format kafka"),
        ("consume bad --format kafka", "needs --group"),
        ("consume bad --format kafka --group g --reset-policy x", "--reset-policy x"),
        ("produce bad -n -2", "-2"),
        ("produce bad -n 1 -X no.such=1", "no.such"),
    ],
)
def test_bad_arguments_get_a_clear_error(
    kctl: Kctl, servers: str, arguments: str, message: str
) -> None:
    kctl("-b", servers, "topics", "create", "bad", "--if-not-exists")
    result = kctl("-b", servers, "verify", *arguments.split())
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert "internal error" not in result.stderr
    assert kctl("-b", servers, "offsets", "bad", "-o", "json").json[0]["offset"] == 0


def _check_against_kafka(kctl: Kctl, tool: Any, servers: str) -> None:
    """Each side reads what the other one wrote, and their lines have the same form."""
    topic = _topic(servers, "verifiable")
    options = ["--max-messages", "40", "--value-prefix", "3", "--repeating-keys", "7"]
    theirs = tool(PRODUCER, "--bootstrap-server", servers, "--topic", topic, *options).stdout
    ours = kctl("-b", servers, "verify", "produce", topic, *options, "--format", "kafka").output
    assert _forms(ours) == _forms(theirs)
    assert _written(ours) == _written(theirs)
    twice = kctl("-b", servers, "verify", "consume", topic, "--expect", "40", "-o", "json")
    assert (twice.json["records"], twice.json["duplicates"], twice.json["missing"]) == (80, 40, 0)
    args = ["--topic", topic, "--max-messages", "80"]
    theirs = tool(CONSUMER, "--bootstrap-server", servers, "--group-id", "vt", "--verbose", *args)
    words = ["verify", "consume", topic, "--max-messages", "80", "--group", "vo", "-v"]
    read = kctl("-b", servers, *words, "--format", "kafka").output
    assert _forms(read) == _forms(theirs.stdout)
    assert _read(read) == _read(theirs.stdout)
    assert len(_read(read)) == 80


def _forms(text: str) -> set[tuple[str, ...]]:
    """Names and fields of the events, in their order."""
    return {(event["name"], *event) for event in _events(text)}


def _written(text: str) -> set[tuple[str, str, int]]:
    sent = [event for event in _events(text) if event["name"] == "producer_send_success"]
    return {(event["key"], event["value"], event["partition"]) for event in sent}


def _read(text: str) -> set[tuple[str, str, int, int]]:
    found = [event for event in _events(text) if event["name"] == "record_data"]
    return {(e["key"], e["value"], e["partition"], e["offset"]) for e in found}


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_lines_are_those_of_the_verifiable_clients(kctl: Kctl, real_kafka: RealKafka) -> None:
    _check_against_kafka(kctl, real_kafka.tool, real_kafka.bootstrap_servers)


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_lines_are_those_of_the_verifiable_clients_of_kafka_4(
    kctl: Kctl, kraft_kafka: KraftKafka
) -> None:
    _check_against_kafka(kctl, kraft_kafka.tool, kraft_kafka.bootstrap_servers)


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_verifiable_clients_work_on_our_broker(
    kctl: Kctl, real_kafka: RealKafka, shared_broker: RunningBroker
) -> None:
    _check_against_kafka(kctl, real_kafka.tool, shared_broker.bootstrap_servers)
