"""Rows and columns of `kctl monitor history`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

from kctl.cli.charts import sparkline
from kctl.cli.tables import Column
from kctl.model.monitoring import LagSample

SUMMARY_COLUMNS = [
    Column("cluster", wide=True),
    Column("topic"),
    Column("lag", right=True),
    Column("max_lag", right=True),
    Column("lag_seconds", right=True),
    Column("produced_per_s", right=True),
    Column("consumed_per_s", right=True),
    Column("chart"),
]
SAMPLE_COLUMNS = [
    Column("time"),
    Column("cluster", wide=True),
    Column("topic"),
    Column("lag", right=True),
    Column("lag_seconds", right=True),
    Column("produced", right=True),
    Column("committed", right=True),
]
_CHART_WIDTH = 40


def summary_rows(samples: Sequence[LagSample]) -> list[dict[str, object]]:
    """A row per cluster and topic: now, the maximum, rates, and a chart of the lag."""
    rows = []
    for (cluster, topic), found in groupby(samples, key=lambda s: (s.cluster, s.topic)):
        own = list(found)
        first, last = own[0], own[-1]
        rows.append(
            {
                "cluster": cluster,
                "topic": topic,
                "lag": last.lag,
                "max_lag": max(sample.lag for sample in own),
                "lag_seconds": _rounded(last.lag_seconds),
                "produced_per_s": _rate(first, last, first.produced, last.produced),
                "consumed_per_s": _rate(first, last, first.committed, last.committed),
                "chart": sparkline(_thinned(own), _CHART_WIDTH),
            }
        )
    return rows


def sample_rows(samples: Sequence[LagSample]) -> list[dict[str, object]]:
    """A row per sample."""
    return [
        {
            "time": datetime.fromtimestamp(sample.time_s, UTC).isoformat(timespec="seconds"),
            "cluster": sample.cluster,
            "topic": sample.topic,
            "lag": sample.lag,
            "lag_seconds": _rounded(sample.lag_seconds),
            "produced": sample.produced,
            "committed": sample.committed,
        }
        for sample in samples
    ]


def _thinned(samples: Sequence[LagSample]) -> list[float]:
    """At most as many values as the chart is wide: the largest lag of each piece of time."""
    if len(samples) <= _CHART_WIDTH:
        return [sample.lag for sample in samples]
    begin, end = samples[0].time_s, samples[-1].time_s
    pieces = [0] * _CHART_WIDTH
    for sample in samples:
        at = int((sample.time_s - begin) / max(end - begin, 1e-9) * (_CHART_WIDTH - 1))
        pieces[at] = max(pieces[at], sample.lag)
    return list(pieces)


def _rate(first: LagSample, last: LagSample, before: int, after: int) -> float | None:
    seconds = last.time_s - first.time_s
    return round((after - before) / seconds, 1) if seconds > 0 else None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
