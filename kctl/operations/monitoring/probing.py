"""What the end-to-end probe has found since the start, per partition."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kctl.model.monitoring import ProbeCounters, ProbeResult


@dataclass
class ProbeHistory:
    """Counters of one cluster; `error` is why the last probe could not run at all."""

    partitions: dict[int, ProbeCounters] = field(default_factory=dict)
    error: str | None = None

    def add(self, results: Sequence[ProbeResult]) -> None:
        """Count one probe of every partition."""
        for result in results:
            counters = self.partitions.setdefault(result.partition, ProbeCounters())
            counters.produced += 1
            if result.produce_s is None:
                counters.failed += 1
                continue
            counters.produce_times.add(result.produce_s)
            if result.roundtrip_s is None:
                counters.lost += 1
                continue
            counters.received += 1
            counters.roundtrip_times.add(result.roundtrip_s)
