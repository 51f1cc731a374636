"""`kctl spark-export` on both engines, from log directories and clusters."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.spark import faults
from tests.spark.support import GOLDEN, LOGS, exported
from tests.support.broker import RunningBroker, running_broker
from tests.support.consumed import headers_of, offset_of, partition_of
from tests.support.kctl import Kctl, KctlResult, run_kctl

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@pytest.fixture(params=["spark", "local"])
def engine(request: pytest.FixtureRequest) -> str:
    """The engine of a run; Spark's session is shared with `spark`."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.fixture
def kctl(engine: str) -> Kctl:
    """kctl with the option --engine."""

    def run(*args: str, **others: Any) -> KctlResult:
        return run_kctl(*args, "--engine", engine, **others)

    return run


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(
        tmp_path_factory.mktemp("broker"),
        transaction_state_log_num_partitions=2,
        offsets_topic_num_partitions=2,
    ) as running:
        yield running


def create_topic(broker: RunningBroker, name: str, partitions: int = 2) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(10)
    return name


def consumed(broker: RunningBroker, topic: str, partitions: int = 2) -> list[Row]:
    """What a consumer that reads committed records gets, up to the end of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"read-{topic}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    rows: list[Row] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            ended.add(partition_of(message))
        else:
            fields = (message.key(), message.value(), headers_of(message))
            rows.append((partition_of(message), offset_of(message), *fields))
    consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def as_rows(found: list[dict[str, Any]]) -> list[Row]:
    return [
        (
            row["partition"],
            row["offset"],
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"]],
        )
        for row in found
    ]


@pytest.fixture(scope="module")
def orders(broker: RunningBroker) -> str:
    """Every codec, nulls, headers, transactions that were committed, aborted and left open."""
    topic = create_topic(broker, "orders")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}
        )
        for number in range(40):
            producer.produce(
                topic,
                None if number % 7 == 0 else f"{codec}-{number} " * 5,
                None if number % 5 == 0 else f"key-{number}",
                partition=number % 2,
                headers=[("codec", codec.encode()), ("none", None)] if number % 3 == 0 else None,
            )
        assert producer.flush(20) == 0
    write_transactions(broker, topic)
    return topic


def write_transactions(broker: RunningBroker, topic: str) -> None:
    def begin(name: str) -> Producer:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name}
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        return producer

    def write(producer: Producer, text: str) -> None:
        for number in range(10):
            producer.produce(topic, f"{text} {number}", partition=number % 2)
        producer.flush(20)

    first, second, third = begin("first"), begin("second"), begin("third")
    write(first, "aborted")
    write(second, "committed")
    write(first, "aborted too")
    first.abort_transaction(20)
    first.begin_transaction()
    write(first, "committed later")
    second.commit_transaction(20)
    first.commit_transaction(20)
    write(third, "never ended")


def export(kctl: Kctl, *arguments: object) -> Any:
    result = kctl("spark-export", *map(str, arguments), "-o", "json")
    assert result.exit_code == 0, result.stderr
    return result.json


@pytest.mark.parametrize("is_by_wire", [True, False])
def test_regression_recreated_topic_is_refused_by_incremental_and_found_by_verify(
    kctl: Kctl, engine: str, broker: RunningBroker, tmp_path: Path, is_by_wire: bool
) -> None:
    topic = create_topic(broker, f"recreated-{engine}-{is_by_wire}", 1)
    write(broker, topic, 100)
    source = ("-b", broker.bootstrap_servers) if is_by_wire else ("--from-dir", broker.log_dir)
    export(kctl, topic, *source, "--to", tmp_path / "out", "--incremental")
    manifest = json.loads((tmp_path / "out" / "export=00001" / "_manifest.json").read_text())
    (partition,) = manifest["partitions"]
    assert manifest["cluster_id"] and partition["topic_id"]
    assert partition["leader_epoch"] == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(10)
    create_topic(broker, topic, 1)
    write(broker, topic, 150)
    words = [topic, *map(str, source), "--to", str(tmp_path / "out"), "--incremental"]
    again = kctl("spark-export", *words)
    assert again.exit_code == 1
    assert f"topic {topic} was recreated" in again.stderr
    found = kctl("spark-export", "verify", str(tmp_path / "out"), *map(str, source))
    assert found.exit_code == 3
    assert "was recreated" in found.output


def write(broker: RunningBroker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(20) == 0


def test_cluster_is_exported_as_a_consumer_reads_it(
    kctl: Kctl, broker: RunningBroker, orders: str, tmp_path: Path
) -> None:
    summary = export(kctl, orders, "-b", broker.bootstrap_servers, "--to", tmp_path / "out")
    wanted = consumed(broker, orders)
    assert len(wanted) == 5 * 40 + 2 * 10
    assert as_rows(exported(tmp_path / "out")) == wanted
    assert summary["records"] == len(wanted)
    checked = kctl("spark-export", "verify", str(tmp_path / "out"), "-b", broker.bootstrap_servers)
    assert checked.exit_code == 0, checked.output


def test_log_directory_of_a_running_broker_is_exported_as_a_consumer_reads_it(
    kctl: Kctl, broker: RunningBroker, orders: str, tmp_path: Path
) -> None:
    export(kctl, orders, "--from-dir", broker.log_dir, "--to", tmp_path / "out", "--task-size", 1)
    assert as_rows(exported(tmp_path / "out")) == consumed(broker, orders)


def test_spark_reads_the_export_with_its_columns(spark: Any, kctl: Kctl, tmp_path: Path) -> None:
    export(kctl, "plain", "--from-dir", LOGS, "--to", tmp_path / "out")
    table = spark.read.parquet(str(tmp_path / "out"))
    assert table.count() == 200
    assert dict(table.dtypes)["timestamp"] == "timestamp"
    assert dict(table.dtypes)["value"] == "binary"


def test_incremental_runs_during_writes_are_exact(
    kctl: Kctl, engine: str, broker: RunningBroker, tmp_path: Path
) -> None:
    topic = create_topic(broker, f"growing-{engine}")
    written = 0
    stop = threading.Event()
    some = threading.Event()

    def write() -> None:
        nonlocal written
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1})
        while not stop.wait(0.002):
            producer.produce(topic, str(written), partition=written % 2)
            written += 1
            if written % 100 == 0:
                producer.flush()
                some.set()
        producer.flush()

    writer = threading.Thread(target=write)
    writer.start()
    arguments = (topic, "-b", broker.bootstrap_servers, "--to", tmp_path / "out", "--incremental")
    try:
        for _ in range(2):
            some.clear()
            assert some.wait(20)
            export(kctl, *arguments)
    finally:
        stop.set()
        writer.join()
    export(kctl, *arguments)
    found = exported(tmp_path / "out")
    assert {row["export"] for row in found} == {1, 2, 3}
    assert as_rows(found) == consumed(broker, topic)
    assert sorted(int(row["value"]) for row in found) == list(range(written))
    again = kctl("spark-export", *map(str, arguments))
    assert (again.exit_code, again.output) == (0, "")
    assert "no new records" in again.stderr


def test_killed_task_is_retried(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kctl.spark.execution.runner.run_task", faults.dies_once)
    export(kctl, "rolled", "--from-dir", LOGS, "--to", tmp_path / "out")
    assert (tmp_path / "witness").exists()
    assert [row["offset"] for row in exported(tmp_path / "out")] == list(range(1500))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["export=00001"]


def test_task_that_always_dies_fails_the_run_after_three_attempts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kctl.spark.execution.runner.run_task", faults.always_dies)
    said = failing(tmp_path, run_kctl, "rolled", "--from-dir", LOGS, "--engine", "local")
    assert said == "error: a task failed: a worker process was killed by SIGKILL"
    assert (tmp_path / "witness").read_text() == "..."


def failing(tmp_path: Path, kctl: Kctl, *arguments: object) -> str:
    """The one-line error of a failing export; it must leave no files."""
    result = kctl("spark-export", *map(str, arguments), "--to", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert not (tmp_path / "out").exists()
    return result.stderr.splitlines()[0]


def test_damaged_log_is_a_one_line_error_and_leaves_no_files(kctl: Kctl, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "logs" / "corrupt" / "flipped-0", tmp_path / "logs" / "rolled-0")
    said = failing(tmp_path, kctl, "rolled", "--from-dir", tmp_path / "logs")
    assert "rolled-0/" in said
    assert "expected crc" in said


def test_full_disk_is_a_one_line_error_and_leaves_no_files(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kctl.spark.execution.runner.run_task", faults.disk_full)
    said = failing(tmp_path, kctl, "rolled", "--from-dir", LOGS)
    assert said.startswith("error: the disk is full")


def test_interrupted_run_publishes_nothing_and_resume_finishes_it(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments = ("rolled", "--from-dir", str(LOGS), "--to", str(tmp_path / "out"))

    def interrupt(self: Any, _running_tasks: int) -> None:
        if self._results():
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("kctl.spark.execution.runner._Watcher.look", interrupt)
        stopped = kctl("spark-export", *arguments)
    assert stopped.exit_code == 130
    assert "--resume" in stopped.stderr
    refused = kctl("spark-export", *arguments)
    assert refused.exit_code == 1
    assert "interrupted" in refused.stderr
    export(kctl, "--resume", "--to", tmp_path / "out")
    assert [row["offset"] for row in exported(tmp_path / "out")] == list(range(1500))


INTERRUPTED = """
import kctl.spark.execution.runner
from tests.spark import faults

kctl.spark.execution.runner.run_task = faults.waits
from kctl.app import main
main()
"""
ENGINES = [["--master", "local[1]"], ["--engine", "local"]]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_cancels_running_tasks_and_leaves_no_files(
    tmp_path: Path, engine: list[str]
) -> None:
    witness = tmp_path / "witness"
    arguments = ["spark-export", "txn", "--from-dir", str(LOGS), "--to", str(tmp_path / "out")]
    command = [sys.executable, "-c", INTERRUPTED, *arguments, *engine]
    # A session of its own: as at a terminal, everything that was started gets the signal.
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as running:
        deadline = time.monotonic() + 300
        while not witness.exists() and running.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert b"interrupted" in said
    assert b"nothing was published; no files were left behind" in said
    assert not (tmp_path / "out").exists()
    assert not Path("/proc", witness.read_text()).exists()


@pytest.mark.slow
def test_workers_end_when_their_driver_is_killed(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    arguments = ["spark-export", "txn", "--from-dir", str(LOGS), "--to", str(tmp_path / "out")]
    command = [sys.executable, "-c", INTERRUPTED, *arguments, "--engine", "local"]
    with subprocess.Popen(command) as running:
        wait_until(lambda: witness.exists() and bool(witness.read_text()))
        running.kill()
    worker = Path("/proc", witness.read_text())
    wait_until(lambda: not worker.exists() or "State:\tZ" in (worker / "status").read_text())


def wait_until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


KILLED_BEFORE_COMMIT = """
import os, signal
from kctl.spark.publishing.export_directory import LocalExportDirectory
LocalExportDirectory.commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from kctl.app import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_driver_killed_before_its_commit_is_resumed(tmp_path: Path, engine: list[str]) -> None:
    arguments = ["spark-export", "txn", "--from-dir", str(LOGS), "--to", str(tmp_path / "out")]
    command = [sys.executable, "-c", KILLED_BEFORE_COMMIT, *arguments, *engine]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_staging"]
    export(run_kctl, "--resume", "--to", tmp_path / "out", "--engine", "local")
    assert len(exported(tmp_path / "out")) == 180
    assert json.loads((tmp_path / "out" / "export=00001" / "_manifest.json").read_text())
