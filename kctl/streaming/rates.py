"""Rates and latencies of a measurement. Pure."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

MEGABYTE = 1024 * 1024
PERCENTILES = (50.0, 95.0, 99.0, 99.9)


class Latencies:
    """Latencies in milliseconds."""

    def __init__(self) -> None:
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._values)

    def add(self, milliseconds: float) -> None:
        """Add a latency."""
        self._values.append(milliseconds)

    def summary(self) -> dict[str, float]:
        """Average, percentiles and maximum; zeros if nothing was measured."""
        ordered = sorted(self._values) or [0.0]
        found = {"avg_ms": sum(ordered) / len(ordered)}
        for percent in PERCENTILES:
            found[f"p{percent:g}_ms"] = percentile(ordered, percent)
        found["max_ms"] = ordered[-1]
        return {name: round(value, 3) for name, value in found.items()}


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The percentile, computed as in Kafka's tools."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


@dataclass
class Throughput:
    """Records and bytes since a start time; the caller passes the current time."""

    started_s: float
    records: int = 0
    size_bytes: int = 0

    def add(self, size_bytes: int) -> None:
        """Count a record."""
        self.records += 1
        self.size_bytes += size_bytes

    def summary(self, now_s: float) -> dict[str, float]:
        """Totals and rates."""
        seconds = max(now_s - self.started_s, 1e-9)
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "seconds": round(seconds, 3),
            "records_per_s": round(self.records / seconds, 1),
            "mb_per_s": round(self.size_bytes / seconds / MEGABYTE, 3),
        }


class Pacer:
    """Limits the rate of a sender: computes how long to wait before the next record."""

    def __init__(self, per_second: float | None, started_s: float) -> None:
        self._per_second = per_second
        self._started_s = started_s

    def wait_s(self, sent: int, now_s: float) -> float:
        """Seconds until record number `sent` is due; 0 if it is due or there is no limit."""
        if not self._per_second:
            return 0.0
        return max(0.0, self._started_s + sent / self._per_second - now_s)
