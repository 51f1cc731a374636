"""Text form of `--stats`: a summary and a histogram."""

from collections.abc import Iterator
from typing import Final

from kctl.cli.tables import Column
from kctl.dump.rows.log_rows import Row
from kctl.dump.stats.log_stats import LogStats

_BAR_WIDTH: Final = 40
_BAR_PARTS: Final = " ▏▎▍▌▋▊▉█"

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


def histogram_lines(row: Row) -> Iterator[str]:
    """The histogram as bars, scaled to the longest."""
    counts = {
        f"{bar['from_bytes']:,}-{bar['to_bytes']:,}": bar["records"] for bar in row["histogram"]
    }
    if not counts:
        return
    yield "Records by bytes of key and value:"
    most, width = max(counts.values()), max(map(len, counts))
    for label, count in counts.items():
        yield f"  {label:>{width}}  {_bar(count / most):<{_BAR_WIDTH}}  {count:,}"


def _bar(share: float) -> str:
    whole, part = divmod(round(share * _BAR_WIDTH * 8), 8)
    return "█" * whole + _BAR_PARTS[part].strip()


def _from_to(first: object, last: object) -> str | None:
    return None if first is None else f"{first} to {last}"
