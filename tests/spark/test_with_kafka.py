"""Exports from a running Apache Kafka, and with Spark's Avro module."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.support import LOGS, exported
from tests.spark.test_spark_export import as_rows, consumed, create_topic, write_transactions
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.usefixtures("spark")
def test_kafka_is_exported_as_a_consumer_reads_it(
    kctl: Kctl, real_kafka: RealKafka, tmp_path: Path
) -> None:
    kafka = RunningBroker(real_kafka.bootstrap_servers, real_kafka.log_dir(1), None)  # type: ignore[arg-type]
    topic = create_topic(kafka, "exported")
    write_transactions(kafka, topic)
    wanted = consumed(kafka, topic)
    assert len(wanted) == 20
    sources = {"wire": ("-b", kafka.bootstrap_servers), "files": ("--from-dir", str(kafka.log_dir))}
    for name, source in sources.items():
        result = kctl("spark-export", topic, *source, "--to", str(tmp_path / name))
        assert result.exit_code == 0, result.stderr
        assert as_rows(exported(tmp_path / name)) == wanted


AVRO = "org.apache.spark:spark-avro_2.13:4.0.0"


def test_avro_is_written_with_the_given_module(tmp_path: Path) -> None:
    fetch = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={AVRO}"]
    subprocess.run([*fetch, f"-DoutputDirectory={tmp_path}"], cwd=tmp_path, check=True)
    (jar,) = tmp_path.glob("*.jar")
    words: list[str | Path] = ["spark-export", "plain", "--from-dir", LOGS]
    words += ["--to", tmp_path / "out", "--format"]
    answer = subprocess.run(
        [sys.executable, "-m", "kctl", *words, "avro", "--jars", jar, "--master", "local[1]"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert answer.returncode == 0, answer.stderr
    assert "200 records in 1 file" in answer.stderr
    (file,) = (tmp_path / "out" / "export=00001").glob("part-*.avro")
    assert file.read_bytes().startswith(b"Obj\x01")
