"""Columns and the progress line of `kctl perf`."""

from collections.abc import Mapping

from kctl.cli.tables import Column
from kctl.views.quantities import size_text

_RATES = [
    Column("records", "Records"),
    Column("bytes", "Bytes", format=size_text),
    Column("seconds", "Seconds"),
    Column("records_per_s", "Records/s"),
    Column("mb_per_s", "MiB/s"),
]
_LATENCIES = [
    Column("avg_ms", "Latency avg (ms)"),
    Column("p50_ms", "50 %"),
    Column("p95_ms", "95 %"),
    Column("p99_ms", "99 %"),
    Column("p99.9_ms", "99.9 %"),
    Column("max_ms", "Max"),
]

PRODUCER_COLUMNS = [*_RATES, *_LATENCIES]
CONSUMER_COLUMNS = [*_RATES, Column("joining_s", "Until first")]
INTERVAL_COLUMNS = [
    Column("time"),
    Column("records", right=True),
    Column("bytes", right=True, format=size_text),
    Column("records_per_s", "RECORDS/S", right=True),
    Column("mb_per_s", "MIB/S", right=True),
]
LATENCY_COLUMNS = [Column("records", "Records"), *_LATENCIES]


def progress_text(result: Mapping[str, float]) -> str:
    """The results so far in one line."""
    line = f"{result['records']:,.0f} records, {result['records_per_s']:,.0f}/s, "
    line += f"{result['mb_per_s']:.1f} MiB/s"
    if "p99_ms" in result:
        line += f", latency 50 % {result['p50_ms']:.1f} ms, 99 % {result['p99_ms']:.1f} ms"
    return line
