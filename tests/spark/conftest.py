"""One Spark for all tests of a run that need one; `kctl spark-export` finds and uses it."""

from collections.abc import Iterator
from typing import Any

import pytest

from kctl.spark.session import SparkOptions, spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local Spark with two cores that gives a task three tries; mark the test `spark`."""
    conf = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}
    with spark_session(SparkOptions("local[2,3]", conf)) as session:
        yield session
