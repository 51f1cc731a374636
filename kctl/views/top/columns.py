"""Columns of `kctl top`."""

from collections.abc import Callable, Sequence

from kctl.cli.charts import sparkline
from kctl.cli.tables import Column, Row, by_word
from kctl.cli.theme import Spans, Style, word_style
from kctl.views.groups import WATCH_COLUMNS
from kctl.views.reassignments import COPYING_COLUMNS
from kctl.views.styles import if_any, marked, size_column, usage_bar, usage_style

_SPARKS = 16


def rate_text(value: object) -> str:
    """`1.5k`: at most five characters for records or requests per second."""
    number = float(str(value))
    for unit in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.0f}{unit}" if number >= 100 or not unit else f"{number:.1f}{unit}"
        number /= 1000
    return f"{number:.1f}T"


def _rate_column(key: str, title: str, priority: int) -> Column:
    style = if_any(key, Style.NAME)
    return Column(key, title, right=True, format=rate_text, priority=priority, style=style)


def _byte_rate_column(key: str, title: str, priority: int) -> Column:
    return size_column(key, title, priority=priority, style=if_any(key, Style.NAME))


def _milliseconds(value: object) -> str:
    number = float(str(value))
    return f"{number:.1f}ms" if number < 100 else f"{number / 1000:.1f}s"


def _percent(value: object) -> str:
    return f"{float(str(value)):.0%}"


def _disk_style(row: Row) -> Style | None:
    used = row.get("disk_used")
    return usage_style(used) if isinstance(used, float) else None


def _disk_bars(rows: Sequence[Row]) -> list[Spans]:
    used = [row.get("disk_used") for row in rows]
    # Without the number, which has a column of its own.
    return [usage_bar(one)[:-1] if isinstance(one, float) else (("", None),) for one in used]


def _sparks(key: str) -> Callable[[Sequence[Row]], list[Spans]]:
    def draw(rows: Sequence[Row]) -> list[Spans]:
        found = [row.get(key) for row in rows]
        lines = [sparkline(one, _SPARKS) if isinstance(one, list) else "" for one in found]
        return [((line.rjust(_SPARKS), Style.NAME),) for line in lines]

    return draw


def _ids(row: Row, key: str) -> list[int]:
    found = row.get(key)
    return found if isinstance(found, list) else []


def _isr_spans(row: Row) -> Spans:
    """The replicas: in sync, or not."""
    isr = _ids(row, "isr")
    return marked(_ids(row, "replicas"), lambda one: Style.GOOD if one in isr else Style.BAD)


def _lag_spans(row: Row) -> Spans:
    """`2:0 3:120`: the lag of each follower."""
    lags = row.get("replica_lags")
    if not isinstance(lags, dict) or not lags:
        return (("-", Style.FAINT),)
    spans: list[tuple[str, Style | None]] = []
    for broker, lag in lags.items():
        spans += [(" ", None)] * bool(spans)
        spans.append((f"{broker}:{'?' if lag is None else lag}", _replica_style(lag)))
    return tuple(spans)


def _replica_style(lag: object) -> Style | None:
    return Style.BAD if lag is None else Style.WARN if lag else Style.FAINT


_UNDER = Column(
    "under_replicated", "URP", right=True, priority=2, style=if_any("under_replicated", Style.WARN)
)
_LAG = Column(
    "lag",
    right=True,
    priority=0,
    style=lambda row: word_style(str(row.get("verdict"))) if row.get("lag") else Style.FAINT,
)
_VERDICT = Column("verdict", priority=1, style=by_word("verdict"))
_TIME_LAG = Column("time_lag", right=True, raw="time_lag_ms", priority=4)
_ETA = Column("caught_up_in", "ETA", right=True, raw="caught_up_in_ms", priority=3)

BROKER_COLUMNS = [
    Column("broker", right=True),
    Column("address", priority=6),
    Column("status", priority=1, style=by_word("status")),
    _byte_rate_column("bytes_in", "IN/S", 1),
    _byte_rate_column("bytes_out", "OUT/S", 2),
    _rate_column("messages_in", "MSG/S", 5),
    _rate_column("requests", "REQ/S", 4),
    Column("produce_p99_ms", "P99", right=True, format=_milliseconds, priority=3),
    Column("leaders", right=True, priority=3),
    Column("replicas", right=True, priority=8),
    _UNDER,
    size_column("size_bytes", "SIZE", priority=5),
    Column("disk_used", "DISK", right=True, format=_percent, style=_disk_style, priority=2),
    Column("disk_bar", " ", chart=_disk_bars, priority=7),
    Column("controller", wide=True),
]
TOPIC_COLUMNS = [
    Column("topic"),
    Column("partitions", "PARTS", right=True, priority=4),
    Column("replication_factor", "RF", right=True, priority=7),
    _rate_column("messages_in", "MSG/S", 0),
    _byte_rate_column("bytes_in", "IN/S", 1),
    _byte_rate_column("bytes_out", "OUT/S", 3),
    Column("trend", chart=_sparks("history"), priority=5),
    size_column("size_bytes", "SIZE", priority=2),
    _UNDER,
    Column("offline", right=True, priority=6, style=if_any("offline", Style.BAD)),
    Column("groups", right=True, priority=6),
    _LAG,
]
PARTITION_COLUMNS = [
    Column("topic", priority=1),
    Column("partition", "PART", right=True, priority=0),
    Column(
        "leader",
        right=True,
        priority=0,
        style=lambda row: Style.BAD if row.get("leader") is None else None,
    ),
    Column("replicas", "REPLICAS (ISR)", spans=_isr_spans, priority=1),
    Column("log_start_offset", "START", right=True, priority=6),
    Column("high_watermark", "HW", right=True, priority=3),
    Column("log_end_offset", "LEO", right=True, priority=2),
    Column("replica_lags", "REPLICA-LAG", spans=_lag_spans, priority=1),
    _rate_column("messages_in", "MSG/S", 4),
    _byte_rate_column("bytes_in", "IN/S", 5),
    size_column("size_bytes", "SIZE", priority=4),
]
REPLICA_COLUMNS = [
    Column("broker", right=True),
    Column("role", priority=0),
    Column("status", priority=0, style=by_word("status")),
    Column("log_end_offset", "LEO", right=True, priority=0),
    Column("lag", right=True, priority=0, style=lambda row: _replica_style(row.get("lag"))),
    size_column("size_bytes", "SIZE", priority=1),
    Column("log_dir", priority=4),
    Column("future", priority=5),
]
GROUP_COLUMNS = [
    Column("group"),
    Column("state", priority=3, style=by_word("state")),
    Column("members", right=True, priority=5),
    Column("topics", right=True, priority=7),
    _LAG,
    _TIME_LAG,
    _rate_column("consumed_per_s", "READ/S", 2),
    _rate_column("produced_per_s", "WRITE/S", 6),
    _ETA,
    Column("trend", chart=_sparks("history"), priority=4),
    _VERDICT,
]
CONSUMER_COLUMNS = [
    Column("group"),
    Column("client_id", priority=1),
    Column("host", priority=5),
    Column("partitions", priority=3),
    _LAG,
    _TIME_LAG,
    _rate_column("consumed_per_s", "READ/S", 2),
    _ETA,
    _VERDICT,
]
REASSIGNMENT_COLUMNS = [
    *(column for column in COPYING_COLUMNS if column.key != "replicas"),
    _byte_rate_column("bytes_per_s", "RATE/S", 2),
    Column("time_left", "ETA", right=True, raw="time_left_ms", priority=1),
]
GROUP_PARTITION_COLUMNS = [
    column for column in WATCH_COLUMNS if column.key != "group" and not column.chart
]
