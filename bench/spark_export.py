"""Topics to Parquet: `kctl spark-export` beside Spark's own Kafka connector, on local[2].

826 MB in records of 100 bytes to 1 KB, in two partitions of our broker. All variants share a Spark
session, which is warmed up with a small topic. Each variant is timed from the command to the
published directory (the local engine including the start of its processes); they run in turns,
twice, and the better time counts, because the first one on a fresh machine also pays for touching
memory.

Opt-in, because the connector's jars come through Maven: KCTL_BENCH_SPARK=1.
"""

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Comparison
from kctl.cli.output import Output
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import run_kctl

SIZE_BYTES = int(os.environ.get("KCTL_BENCH_SPARK_BYTES", 826_000_000))
WARM_UP_BYTES = 16_000_000
PARTITIONS = 2
ROUNDS = 2
SMALLEST, LARGEST = 100, 530  # bytes of a value, 315 on average
PEER = "spark-sql-kafka 4.0"
CACHE = Path.home() / ".cache" / "kctl-bench" / "spark-kafka-4.0.0"
_DEPENDENCIES = [
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.0",
    "org.apache.commons:commons-pool2:2.12.0",
]


def run() -> Iterator[Comparison]:
    """Measure exports from log directories and over the wire."""
    if not os.environ.get("KCTL_BENCH_SPARK"):
        Output().note("spark_export: skipped; KCTL_BENCH_SPARK=1 gets the connector with Maven")
        return
    from kctl.spark.engine.session import SparkOptions, spark_session

    conf = {"spark.jars": ",".join(map(str, connector_jars()))}
    with (
        TemporaryDirectory(prefix="kctl-bench-") as directory,
        running_broker(Path(directory)) as broker,
        spark_session(SparkOptions("local[2]", conf)) as spark,
    ):
        out = Path(directory, "out")
        write_topic(broker, "small", WARM_UP_BYTES)
        write_topic(broker, "large", SIZE_BYTES)
        ways: dict[str, Callable[[str, Path], None]] = {
            "connector": lambda topic, to: _connector(spark, broker, topic, to),
            "log directories": lambda topic, to: _ours(topic, to, "--from-dir", broker.log_dir),
            "the wire": lambda topic, to: _ours(topic, to, "-b", broker.bootstrap_servers),
            "the wire, --engine local": lambda topic, to: _ours(
                topic, to, "-b", broker.bootstrap_servers, "--engine", "local", "--workers", 2
            ),
        }
        rates = dict.fromkeys(ways, 0.0)
        for name, export in ways.items():
            export("small", out / f"{name}-small")
        for _ in range(ROUNDS):
            for name, export in ways.items():
                shutil.rmtree(out / name, ignore_errors=True)
                os.sync()  # dirty pages of one variant must not cost the next
                started = time.perf_counter()
                export("large", out / name)
                rate = SIZE_BYTES / 1e6 / (time.perf_counter() - started)
                rates[name] = max(rates[name], rate)
        counts = {spark.read.parquet(str(out / name)).count() for name in ways}
        assert len(counts) == 1, f"not the same records: {counts}"
    goals = {"log directories": 4.0, "the wire": 2.5, "the wire, --engine local": 4.0}
    for name, goal in goals.items():
        yield Comparison(
            f"from {name}",
            rates[name],
            rates["connector"],
            PEER,
            "MB/s",
            goal,
            more_is_better=True,
        )


def connector_jars() -> list[Path]:
    """Jars of Spark's Kafka connector, downloaded by Maven on first use."""
    if not (CACHE / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for coordinates in _DEPENDENCIES:
            command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={coordinates}"]
            subprocess.run([*command, f"-DoutputDirectory={CACHE}"], cwd=CACHE, check=True)
        (CACHE / "complete").touch()
    return sorted(CACHE.glob("*.jar"))


def write_topic(broker: RunningBroker, topic: str, size_bytes: int) -> None:
    """Create a topic and fill it with keyed text records."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20}
    producer = Producer(settings | {"queue.buffering.max.messages": 500_000})
    chooser = random.Random(1)
    text = "".join(chooser.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=100_000))
    written = number = 0
    while written < size_bytes:
        start, length = chooser.randrange(90_000), chooser.randint(SMALLEST, LARGEST)
        try:
            producer.produce(
                topic, text[start : start + length], f"user-{number % 65_536}", number % PARTITIONS
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
    """Export as the connector's guide shows, with tasks for two cores and the same columns."""
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    frame.write.parquet(str(to))
