"""One Spark session for all tests; `kctl spark-export` uses it because it is active."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.spark.engine.session import SparkOptions, spark_session


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory behind viewfs://lake/data, a file system of Hadoop."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark(lake: Path) -> Iterator[Any]:
    """A local Spark with two cores and three attempts per task; mark the test `spark`."""
    conf = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.fs.viewfs.mounttable.lake.link./data": lake.as_uri(),
    }
    with spark_session(SparkOptions("local[2,3]", conf, is_light=True)) as session:
        yield session
