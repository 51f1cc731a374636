"""Text form of `--stats`: a summary and a histogram."""

from collections.abc import Iterator
from typing import Final

from kctl.cli.charts import bar
from kctl.cli.tables import Column
from kctl.cli.theme import Paint, Style
from kctl.dump.rows.log_rows import Row
from kctl.dump.stats.log_stats import LogStats

_BAR_WIDTH: Final = 40

SUMMARY: Final = [
    Column("segments", "Segments"),
    Column("bytes", "Bytes"),
    Column("batches", "Batches"),
    Column("records", "Records"),
    Column("formats", "Formats"),
    Column("offsets", "Offsets"),
    Column("gaps", "Gaps"),
    Column("times", "Times"),
    Column("codecs", "Codecs"),
    Column("batch_bytes", "Batch bytes"),
    Column("record_bytes", "Record bytes"),
    Column("keys", "Keys"),
    Column("tombstones", "Tombstones"),
    Column("records_with_headers", "With headers"),
    Column("transactions", "Transactions"),
    Column("producers", "Producers"),
    Column("bad_crc_batches", "Bad crc"),
]


CSV_COLUMNS: Final = [
    *map(Column, ("directory", "segments", "bytes", "batches", "records")),
    *map(Column, ("first_offset", "last_offset", "gaps", "missing_offsets")),
    *map(Column, ("first_timestamp", "first_time", "last_timestamp", "last_time")),
    *map(Column, ("formats", "codecs")),
    *map(Column, ("batch_bytes_min", "batch_bytes_mean", "batch_bytes_max")),
    *map(Column, ("record_bytes_min", "record_bytes_mean", "record_bytes_max")),
    *map(Column, ("null_keys", "distinct_keys", "distinct_keys_exact", "tombstones")),
    *map(Column, ("records_with_headers", "control_batches", "transactional_batches")),
    *map(Column, ("producers", "bad_crc_batches")),
]


def flat_row(row: Row) -> Row:
    """The statistics without nested values, for CSV; formats and codecs are lists of names."""
    spans = {
        f"{key}_{part}": value
        for key in ("batch_bytes", "record_bytes")
        for part, value in row[key].items()
    }
    return row | spans | {"formats": list(row["formats"]), "codecs": list(row["codecs"])}


def summary(stats: LogStats) -> Row:
    """The statistics formatted for the columns of SUMMARY."""
    row = stats.row()
    about = "" if stats.keys.is_exact else "about "
    return row | {
        "bytes": f"{row['bytes']:,}",
        "batches": f"{row['batches']:,}",
        "records": f"{row['records']:,}",
        "formats": ", ".join(f"{count:,} of format {m}" for m, count in row["formats"].items()),
        "offsets": _from_to(row["first_offset"], row["last_offset"]),
        "gaps": f"{row['gaps']:,} ({row['missing_offsets']:,} offsets)" if row["gaps"] else "none",
        "times": _from_to(row["first_time"], row["last_time"]),
        "codecs": ", ".join(
            f"{name} {codec['batches']:,} batches at {codec['ratio']} to 1"
            for name, codec in row["codecs"].items()
        ),
        "batch_bytes": f"{stats.batch_sizes} (min / mean / max)" if stats.batches else None,
        "record_bytes": f"{stats.record_sizes} (key and value)" if stats.records else None,
        "keys": f"{about}{row['distinct_keys']:,} distinct, {row['null_keys']:,} null",
        "transactions": f"{row['transactional_batches']:,} batches, "
        f"{row['control_batches']:,} of them markers",
    }


def histogram_lines(row: Row, paint: Paint) -> Iterator[str]:
    """The histogram as bars, scaled to the longest."""
    counts = {
        f"{bar['from_bytes']:,}-{bar['to_bytes']:,}": bar["records"] for bar in row["histogram"]
    }
    if not counts:
        return
    yield "Records by bytes of key and value:"
    most, width = max(counts.values()), max(map(len, counts))
    for label, count in counts.items():
        drawn = f"{bar(count / most, _BAR_WIDTH):<{_BAR_WIDTH}}"
        yield f"  {label:>{width}}  {paint(drawn, Style.NAME)}  {count:,}"


def _from_to(first: object, last: object) -> str | None:
    return None if first is None else f"{first} to {last}"
