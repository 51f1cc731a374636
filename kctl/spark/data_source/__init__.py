"""`spark.read.format("kctl")`: topics as DataFrames, for notebooks and Spark jobs.

    from kctl.spark.data_source import register

    register(spark)
    orders = (
        spark.read.format("kctl")
        .option("bootstrap.servers", "localhost:9092")   # or: .option("from.dir", "/var/lib/kafka")
        .option("topics", "orders,audit.*")
        .option("since", "-1d")
        .load()
        .where("partition = 3 AND offset >= 1000")       # reads only that
    )
    tail = spark.readStream.format("kctl").options(**the_same).load()

Options: `topics` (comma-separated names or regular expressions), `bootstrap.servers` or `from.dir`
(comma-separated log directories), `command.config` (a client.properties file on the driver, for TLS
and SASL), `isolation`, `task.bytes`, `timeout`, `minPartitions`; for batch reads `since`, `until`,
`last`, `endingOffsets`; for streams `maxOffsetsPerTrigger`; for both `startingOffsets` (earliest,
latest, or JSON) and `failOnDataLoss`, as in Spark's own connector, whose names `subscribe`,
`subscribePattern` and `kafka.bootstrap.servers` are understood, too. Unknown options are errors.

A schema such as `.schema("offset BIGINT, value BINARY")` limits the columns that are read, and may
name `leader_epoch` and `producer_id`. Filters on topic, partition, offset and timestamp limit the
offsets that are read. Offsets are pinned when the DataFrame is created. Records are passed to Spark
as Arrow batches. `kctl spark-export` is faster for exports of many gigabytes, because its tasks
write their files themselves.
"""

from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from kctl.cli.errors import CliError
from kctl.spark.data_source.options import Request
from kctl.spark.data_source.reading import (
    KctlReader,
    KctlStreamReader,
    PiecesToRead,
    limited,
    read_batches,
)

_TYPES: Final = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestamp_type": "string",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "leader_epoch": "int",
    "producer_id": "bigint",
}
_ON_REQUEST: Final = ("leader_epoch", "producer_id")
SCHEMA: Final = ", ".join(
    f"{name} {kind}" for name, kind in _TYPES.items() if name not in _ON_REQUEST
)
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"

__all__ = [
    "SCHEMA",
    "KctlDataSource",
    "KctlReader",
    "KctlStreamReader",
    "PiecesToRead",
    "Request",
    "limited",
    "read_batches",
    "register",
]


def register(spark: Any) -> None:
    """Register the format `kctl` in a session, and let Spark pass filters to it."""
    spark.dataSource.register(KctlDataSource)
    spark.conf.set(_PUSHDOWN, "true")


class KctlDataSource(DataSource):
    """The format `kctl`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kctl"

    def schema(self) -> str:
        """The columns, which do not depend on the options."""
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        """For `spark.read`."""
        return KctlReader(Request(self.options), chosen_columns(schema))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For `spark.readStream`."""
        return KctlStreamReader(Request(self.options, is_stream=True), chosen_columns(schema))


def chosen_columns(schema: Any) -> list[str]:
    """The names of a schema's columns; CliError if a column does not exist or has another type."""
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if field.name not in _TYPES:
            raise CliError(f"no column {field.name}", f"columns: {', '.join(_TYPES)}")
        if kind != _TYPES[field.name]:
            raise CliError(f"column {field.name} is {_TYPES[field.name]}, not {kind}")
    return [field.name for field in schema.fields]
