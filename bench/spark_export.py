"""Topics to Parquet: `kctl spark-export` compared with Spark's own Kafka connector, on local[2].

826 MB in records of 100 to 530 bytes, in a topic of one partition and again in one of 100.

- jobs: all variants share a Spark session, which is warmed up with a small topic; from the command
  to the published directory;
- DataFrames: the same session, every column read by `format("noop")`;
- whole runs: processes of their own, from start to exit, with the start of Spark where it is used;
- planning 200 partitions from log directories, in seconds.

Variants run in turns (KCTL_BENCH_SPARK_ROUNDS, 2 by default), and the better time counts, because
the first one on a fresh machine also pays for touching memory.

Opt-in, because the connector's jars come through Maven: KCTL_BENCH_SPARK=1.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.dataset as ds
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Comparison
from kctl.cli.output import Output
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import run_kctl

SIZE_BYTES = int(os.environ.get("KCTL_BENCH_SPARK_BYTES", 826_000_000))
WARM_UP_BYTES = 16_000_000
ROUNDS = int(os.environ.get("KCTL_BENCH_SPARK_ROUNDS", 2))
MANY = 100
PLANNED_PARTITIONS = 200
SMALLEST, LARGEST = 100, 530  # bytes of a value, 315 on average
PEER = "spark-sql-kafka 4.0"
CACHE = Path.home() / ".cache" / "kctl-bench" / "spark-kafka-4.0.0"
_DEPENDENCIES = [
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.0",
    "org.apache.commons:commons-pool2:2.12.0",
]


GOALS = {
    ("job, log directories", 1): 6.0,
    ("job, log directories", MANY): 12.0,
    ("job, the wire", 1): 6.0,
    ("job, the wire", MANY): 12.0,
    ("DataFrame", 1): 3.0,
    ("DataFrame", MANY): 3.0,
    ("whole run, --engine local", 1): 8.0,
    ("whole run, --engine local", MANY): 8.0,
}
_PEERS = {
    "job, log directories": "connector job",
    "job, the wire": "connector job",
    "DataFrame": "connector DataFrame",
    "whole run, --engine local": "connector whole run",
}
Way = Callable[[str, Path], None]


def run() -> Iterator[Comparison]:
    """Measure jobs, DataFrames, whole runs and planning."""
    if not os.environ.get("KCTL_BENCH_SPARK"):
        Output().note("spark_export: skipped; KCTL_BENCH_SPARK=1 gets the connector with Maven")
        return
    with (
        TemporaryDirectory(prefix="kctl-bench-") as directory,
        running_broker(Path(directory)) as broker,
    ):
        write_topic(broker, "small", WARM_UP_BYTES, 2)
        for partitions in (1, MANY):
            write_topic(broker, f"large-{partitions}", SIZE_BYTES, partitions)
        seconds = _measure(broker, Path(directory, "out"))
        for (name, partitions), goal in GOALS.items():
            yield Comparison(
                f"{name}, {partitions} partitions",
                SIZE_BYTES / 1e6 / seconds[name, partitions],
                SIZE_BYTES / 1e6 / seconds[_PEERS[name], partitions],
                PEER,
                "MB/s",
                goal,
                more_is_better=True,
            )
        yield _planning(broker, Path(directory, "plan"))


def _measure(broker: RunningBroker, out: Path) -> dict[tuple[str, int], float]:
    """The best time of each variant and number of partitions."""
    from kctl.spark.data_source import register
    from kctl.spark.engine.session import SparkOptions, spark_session

    conf = {"spark.jars": ",".join(map(str, connector_jars()))}
    servers = broker.bootstrap_servers
    local = ("--engine", "local", "--workers", 2)
    seconds: dict[tuple[str, int], float] = {}
    with spark_session(SparkOptions("local[2]", conf)) as spark:
        register(spark)
        ways: dict[str, Way] = {
            "connector job": lambda topic, to: _connector(spark, broker, topic, to),
            "job, log directories": lambda topic, to: _ours(
                topic, to, "--from-dir", broker.log_dir
            ),
            "job, the wire": lambda topic, to: _ours(topic, to, "-b", servers),
            "connector DataFrame": lambda topic, to: _noop(_connector_frame(spark, broker, topic)),
            "DataFrame": lambda topic, to: _noop(_our_frame(spark, broker, topic)),
        }
        _time(ways, out, seconds)
    whole: dict[str, Way] = {
        "connector whole run": lambda topic, to: _process("-c", _CONNECTOR, topic, to, servers),
        "whole run, --engine local": lambda topic, to: _process(
            "-m", "kctl", "spark-export", topic, "--to", to, "-b", servers, *local
        ),
    }
    _time(whole, out, seconds)
    return seconds


def _time(ways: dict[str, Way], out: Path, seconds: dict[tuple[str, int], float]) -> None:
    for name, export in ways.items():
        export("small", out / f"{name}-small")
    for partitions in (1, MANY):
        for _ in range(ROUNDS):
            for name, export in ways.items():
                shutil.rmtree(out / name, ignore_errors=True)
                os.sync()  # dirty pages of one variant must not cost the next
                started = time.perf_counter()
                export(f"large-{partitions}", out / name)
                taken = time.perf_counter() - started
                seconds[name, partitions] = min(seconds.get((name, partitions), taken), taken)
                Output().note(f"{name}, {partitions} partitions: {taken:.2f} s")
        found = [ds.dataset(out / name, format="parquet") for name in ways if (out / name).exists()]
        counts = {each.count_rows() for each in found}
        assert len(counts) == 1, f"not the same records: {counts}"


def _planning(broker: RunningBroker, to: Path) -> Comparison:
    """Seconds to plan many partitions of a running broker; its indexes are preallocated."""
    write_topic(broker, "planned", WARM_UP_BYTES, PLANNED_PARTITIONS)
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        _ours("planned", to, "--from-dir", broker.log_dir, "--dry-run")
        best = min(best, time.perf_counter() - started)
    return Comparison(
        f"planning {PLANNED_PARTITIONS} partitions",
        best,
        1.0,
        "one second",
        "s",
        1.0,
        more_is_better=False,
    )


def _process(*words: object) -> None:
    subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True)


def connector_jars() -> list[Path]:
    """Jars of Spark's Kafka connector, downloaded by Maven on first use."""
    if not (CACHE / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for coordinates in _DEPENDENCIES:
            command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={coordinates}"]
            subprocess.run([*command, f"-DoutputDirectory={CACHE}"], cwd=CACHE, check=True)
        (CACHE / "complete").touch()
    return sorted(CACHE.glob("*.jar"))


def write_topic(broker: RunningBroker, topic: str, size_bytes: int, partitions: int) -> None:
    """Create a topic and fill it with keyed text records."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20}
    producer = Producer(settings | {"queue.buffering.max.messages": 500_000})
    chooser = random.Random(1)
    text = "".join(chooser.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=100_000))
    written = number = 0
    while written < size_bytes:
        start, length = chooser.randrange(90_000), chooser.randint(SMALLEST, LARGEST)
        try:
            producer.produce(
                topic, text[start : start + length], f"user-{number % 65_536}", number % partitions
            )
        except BufferError:
            producer.poll(0.1)
            continue
        written += length
        number += 1
    assert producer.flush(120) == 0


def _ours(topic: str, to: Path, *source: object) -> None:
    # Several tasks in the warm-up, so that the workers of both cores have loaded Arrow.
    task_size = ["--task-size", "2"] if topic == "small" else []
    result = run_kctl("spark-export", topic, "--to", str(to), *map(str, source), *task_size)
    assert result.exit_code == 0, result.stderr


def _connector(spark: Any, broker: RunningBroker, topic: str, to: Path) -> None:
    _connector_frame(spark, broker, topic).write.parquet(str(to))


def _connector_frame(spark: Any, broker: RunningBroker, topic: str) -> Any:
    """As the connector's guide shows, with the same columns."""
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )


def _our_frame(spark: Any, broker: RunningBroker, topic: str) -> Any:
    options = {"bootstrap.servers": broker.bootstrap_servers, "topics": topic}
    return spark.read.format("kctl").options(**options).load()


def _noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


_CONNECTOR = """
import sys
from bench.spark_export import connector_jars
from kctl.spark.engine.session import SparkOptions, spark_session
topic, to, servers = sys.argv[1:]
conf = {"spark.jars": ",".join(map(str, connector_jars()))}
with spark_session(SparkOptions("local[2]", conf)) as spark:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
    options["kafka.isolation.level"] = "read_committed"
    spark.read.format("kafka").options(**options).load().write.parquet(to)
"""
