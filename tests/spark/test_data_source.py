"""`spark.read.format("kctl")` and `readStream`, with a real Spark."""

from pathlib import Path
from typing import Any

import pytest

from kctl.spark.data_source import register
from tests.spark.support import LOGS, kafka_printed, sizes, write_log

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]


@pytest.fixture
def source(spark: Any) -> Any:
    register(spark)
    return spark


def test_data_frame_has_the_records_of_a_log_directory(source: Any) -> None:
    frame = (
        source.read.format("kctl")
        .option("from.dir", str(LOGS))
        .option("topics", "rolled")
        .option("task.bytes", "20000")
        .load()
    )
    rows = [row.asDict() for row in frame.orderBy("offset").collect()]
    assert sizes(rows) == kafka_printed("magic2", "rolled-0")
    assert rows[0]["timestamp"] is not None


def test_option_that_is_missing_is_named(source: Any) -> None:
    with pytest.raises(Exception, match="the option topics is missing"):
        source.read.format("kctl").option("from.dir", str(LOGS)).load().count()


def test_stream_reads_on_where_it_ended(source: Any, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "t-0"
    first, second = [[(at, at, None, b"v", ())] for at in (0, 1)]
    write_log(log, [first])

    def run_once() -> list[int]:
        stream = (
            source.readStream.format("kctl")
            .option("from.dir", str(tmp_path / "logs"))
            .option("topics", "t")
            .option("starting.offsets", "earliest")
            .load()
        )
        query = (
            stream.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        rows = source.read.parquet(str(tmp_path / "out")).collect()
        return sorted(row["offset"] for row in rows)

    assert run_once() == [0]
    write_log(log, [first, second])
    assert run_once() == [0, 1]
