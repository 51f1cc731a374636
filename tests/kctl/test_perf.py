"""`kctl perf` on our broker, and its statistics."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.streaming.config import Properties
from kctl.streaming.measuring import Load, ProducerTest, measure_consumer, measure_latency
from kctl.streaming.rates import Latencies, Pacer, Throughput
from kctl.views.kafka_text.perf import CONSUMER_HEADER, consumer_lines, latency_lines, producer_line
from tests.support.broker import RunningBroker
from tests.support.streaming import Run, kctl_on, quick_groups_broker

TOOLS = Path(__file__).parents[1] / "golden" / "tools"


@pytest.fixture(scope="module")
def perf_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with quick_groups_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def run(perf_broker: RunningBroker) -> Run:
    """kctl with the module's broker as its cluster."""
    return kctl_on(perf_broker)


def test_produced_records_are_consumed(run: Run) -> None:
    run("topics", "create", "load", "-p", "2")
    words = ["perf", "produce", "load", "-n", "500", "-s", "50", "-z", "lz4", "-o", "json"]
    written = run(*words).json
    assert (written["records"], written["bytes"]) == (500, 25_000)
    assert 0 < written["p50_ms"] <= written["p99_ms"] <= written["max_ms"]
    read = run("perf", "consume", "load", "-n", "500", "-o", "json").json
    assert (read["records"], read["bytes"]) == (500, 25_000)
    assert 0 <= read["joining_s"] <= read["seconds"]


def test_transactions_are_committed_and_statistics_printed(run: Run) -> None:
    run("topics", "create", "committed")
    words = ("perf", "produce", "committed", "-n", "50", "--transaction-duration-ms", "1")
    assert run(*words, "--transactional-id", "perf-tx", "-o", "json").json["records"] == 50
    (listed,) = run("transactions", "list", "-o", "json").json
    assert (listed["transactional_id"], listed["state"]) == ("perf-tx", "CompleteCommit")
    measured = ("perf", "consume", "committed", "-n", "50", "--print-metrics")
    read = run(*measured, "--show-detailed-stats", "-o", "json").json
    assert (read["records"], read["intervals"][-1]["records"]) == (50, 50)
    assert read["metrics"]["rxmsgs"] >= 50
    assert "rxmsgs" in run(*measured).output
    refused = run("perf", "produce", "committed", "--transactional-id", "x", "-a", "1")
    assert (refused.exit_code, "need --acks all" in refused.stderr) == (2, True)


def test_throughput_limits_the_rate(run: Run) -> None:
    run("topics", "create", "slow")
    words = ["perf", "produce", "slow", "-n", "20", "--throughput", "100", "-o", "json"]
    assert run(*words).json["seconds"] >= 0.19


def test_consume_ends_when_idle(run: Run) -> None:
    run("topics", "create", "silent")
    words = ["perf", "consume", "silent", "--from-latest", "--idle", "0.3", "-o", "json"]
    assert run(*words).json["records"] == 0


def test_latency_measures_each_round_trip(run: Run) -> None:
    run("topics", "create", "round")
    result = run("perf", "latency", "round", "-n", "10", "-a", "1", "-o", "json").json
    assert result["records"] == 10
    assert 0 < result["avg_ms"] <= result["max_ms"]


def test_ctrl_c_prints_the_results_so_far(run: Run, perf_broker: RunningBroker) -> None:
    run("topics", "create", "endless")
    words = ["perf", "produce", "endless", "-n", "1000000", "--throughput", "200", "-o", "json"]
    environ = {**os.environ, "KCTL_BOOTSTRAP_SERVERS": perf_broker.bootstrap_servers}
    with subprocess.Popen(
        [sys.executable, "-m", "kctl", *words], env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        # One record is not enough: it can be read before its producer has seen the acknowledgement,
        # and an unacknowledged record is not counted. 50 take 250 ms.
        assert run("consume", "endless", "-n", "50").exit_code == 0
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert 0 < json.loads(output)["records"] < 1_000_000


@pytest.mark.parametrize("code", [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT])
def test_regression_records_discarded_after_ctrl_c_are_not_failures(
    run: Run, perf_broker: RunningBroker, code: int
) -> None:
    interrupted = Event()
    interrupted.set()
    properties: Properties = {"bootstrap.servers": perf_broker.bootstrap_servers}
    test = ProducerTest(properties, Load("any", 5, 10, -1), lambda _: None, interrupted, print)
    test._delivered(KafkaError(code), None)  # type: ignore[arg-type]
    assert test.run()["records"] == 0


def test_interrupted_measurements_return_the_results_so_far(
    run: Run, perf_broker: RunningBroker
) -> None:
    run("topics", "create", "waiting")
    interrupted = Event()
    interrupted.set()
    properties: Properties = {
        "bootstrap.servers": perf_broker.bootstrap_servers,
        "group.id": "perf",
    }
    load = Load("waiting", 1000, 10, per_second=0.001)
    sent = ProducerTest(without_group(properties), load, print, interrupted, print).run()
    assert sent["records"] == 0
    starts = {TopicPartition("waiting", 0): 0}
    read = measure_consumer(properties, starts, 1000, 60, print, interrupted)
    assert read["records"] == 0
    went = measure_latency(without_group(properties), properties, load, 10, interrupted)
    assert went["records"] == 1


def without_group(properties: Properties) -> Properties:
    return {key: value for key, value in properties.items() if key != "group.id"}


@pytest.mark.parametrize("verb", ["consume", "latency"])
def test_unknown_topic_is_named(run: Run, verb: str) -> None:
    result = run("perf", verb, "nowhere")
    assert (result.exit_code, "'nowhere'" in result.stderr) == (1, True)


def test_kafka_lines_have_the_format_of_the_golden_ones(run: Run) -> None:
    run("topics", "create", "shapes")
    ours = run("perf", "produce", "shapes", "-n", "100", "--format", "kafka").output
    assert shape(ours) == shape(golden("16"))
    theirs = golden("19").splitlines()
    head, line = run(
        "perf", "consume", "shapes", "-n", "100", "--format", "kafka"
    ).output.splitlines()
    assert head == theirs[0] == CONSUMER_HEADER
    assert shape(line) == shape(theirs[1])


def golden(name: str) -> str:
    (path,) = TOOLS.glob(f"{name}-*.txt")
    return path.read_text().split("\n", 1)[1].rpartition("exit 0")[0]


def shape(text: str) -> str:
    """The text with every number replaced, decimals kept apart from whole ones by their places."""
    return re.sub(r"\d+", "0", re.sub(r"\.(\d+)", lambda match: "." + "d" * len(match[1]), text))


def test_kafka_producer_line_equals_the_golden_one() -> None:
    numbers = {
        "records": 5000, "records_per_s": 5081.300813, "mb_per_s": 0.97, "avg_ms": 379.28,
        "max_ms": 657.0, "p50_ms": 378, "p95_ms": 497, "p99_ms": 514, "p99.9_ms": 514,
    }  # fmt: skip
    assert producer_line(numbers) + "\n" == golden("16")


def test_other_kafka_lines() -> None:
    moment = datetime(2026, 11, 16, 0, 29, 23, 157_000)
    result = {"bytes": 1_000_000, "seconds": 0.918, "joining_s": 0.73, "mb_per_s": 1.0389}
    _, line = consumer_lines(result | {"records": 5000, "records_per_s": 5446.6231}, moment, moment)
    assert line == golden("19").splitlines()[1].replace("00:29:24:075", "00:29:23:157")
    numbers = {"avg_ms": 1.5, "p50_ms": 1.0, "p99_ms": 3.9, "p99.9_ms": 4.0}
    assert list(latency_lines(numbers)) == [
        "Avg latency: 1.5000 ms",
        "",
        "Percentiles: 50th = 1, 99th = 3, 99.9th = 4",
    ]


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_percentiles_are_measured_values_in_order(values: list[float]) -> None:
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    found = latencies.summary()
    ordered = [found[name] for name in ("p50_ms", "p95_ms", "p99_ms", "p99.9_ms", "max_ms")]
    assert ordered == sorted(ordered)
    assert set(ordered) <= {round(value, 3) for value in values}


def test_results_without_measurements_are_zero() -> None:
    assert Latencies().summary()["max_ms"] == 0
    assert Throughput(0.0).summary(2.0)["records_per_s"] == 0


def test_pacer_spreads_records_over_time() -> None:
    pacer = Pacer(10, started_s=100.0)
    assert pacer.wait_s(5, now_s=100.0) == pytest.approx(0.5)
    assert pacer.wait_s(5, now_s=101.0) == 0
    assert Pacer(None, 0.0).wait_s(10**9, 0.0) == 0
