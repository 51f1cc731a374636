"""Which records of the exported offsets become rows: `--since`, `--until`, `--sample`, `--where`.

All of them are exact and depend on the record alone, so every attempt at a task and `verify` choose
the same rows.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kctl.spark.decoding.where import where_expression
from kctl.spark.planning.settings import TaskSettings

_MULTIPLIER: Final = 0x9E3779B97F4A7C15 - 2**64
"""2**64 divided by the golden ratio, odd: spreads consecutive offsets evenly (Knuth)."""


def select_records(table: pa.Table, settings: TaskSettings) -> pa.Table:
    """The records in the time span and in the sample, before they are decoded.

    A record without a timestamp is in no time span.
    """
    times = table.column("timestamp")
    if settings.since_ms is not None:
        table = table.filter(pc.greater_equal(times.cast(pa.int64()), settings.since_ms))
        times = table.column("timestamp")
    if settings.until_ms is not None:
        table = table.filter(pc.less(times.cast(pa.int64()), settings.until_ms))
    if settings.sample < 1:
        table = table.filter(_sampled(table, settings.sample))
    return table


def _sampled(table: pa.Table, share: float) -> pa.ChunkedArray:
    """A fixed share of the offsets, spread evenly; partitions are sampled differently."""
    mixed = pc.add(table.column("offset"), pc.multiply(table.column("partition"), 7919))
    hashed = pc.shift_right(pc.multiply(mixed, pa.scalar(_MULTIPLIER, pa.int64())), 33)
    return pc.less(pc.bit_wise_and(hashed, 2**30 - 1), round(share * 2**30))


def select_rows(table: pa.Table, settings: TaskSettings) -> pa.Table:
    """The decoded rows that meet `--where`."""
    if not settings.where:
        return table
    return table.filter(where_expression(settings.where, table.schema))
