"""Details of measurements: statistics of a librdkafka client, and results by interval."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kctl.cli.times import iso_time, now_ms
from kctl.streaming.rates import MEGABYTE

_INTERVAL_MS = 100


class ClientStatistics:
    """Keeps the newest statistics of a client; complete after `await_statistics`."""

    def __init__(self) -> None:
        self._newest: dict[str, Any] = {}

    def properties(self) -> dict[str, object]:
        """Properties of the client that is measured."""
        return {"statistics.interval.ms": _INTERVAL_MS, "stats_cb": self._note}

    def _note(self, text: str) -> None:
        self._newest = json.loads(text)

    def metrics(self) -> dict[str, float]:
        """The numbers by name: `txmsgs`, `brokers.127.0.0.1:9092/1.rtt.avg` …; sorted."""
        return dict(sorted(_flat("", self._newest)))


def await_statistics(properties: Mapping[str, object], poll: Callable[[float], object]) -> None:
    """Poll a client until its final statistics have arrived, if it reports any."""
    if "stats_cb" not in properties:
        return
    deadline_s = time.monotonic() + 2 * _INTERVAL_MS / 1000
    while (left_s := deadline_s - time.monotonic()) > 0:
        poll(left_s)


def _flat(prefix: str, found: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value)
        elif isinstance(value, int | float):
            yield f"{prefix}{name}", value


class Intervals:
    """The parts of a measurement: what was counted between two reports."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self._before: Mapping[str, float] = {"records": 0, "bytes": 0, "seconds": 0.0}

    def add(self, total: Mapping[str, float]) -> None:
        """Add the part since the last report; nothing if no time has passed."""
        seconds = total["seconds"] - self._before["seconds"]
        if seconds <= 0:
            return
        records = total["records"] - self._before["records"]
        size = total["bytes"] - self._before["bytes"]
        self.rows.append(
            {
                "time": iso_time(now_ms()),
                "records": int(total["records"]),
                "bytes": int(total["bytes"]),
                "records_per_s": round(records / seconds, 1),
                "mb_per_s": round(size / seconds / MEGABYTE, 3),
            }
        )
        self._before = total
