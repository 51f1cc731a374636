"""A running Apache Kafka, exported through the wire and from its files."""

from pathlib import Path

import pytest

from tests.spark.support import exported
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
