"""Options of the engines: Spark, or worker processes on this machine."""

import os
from dataclasses import dataclass

from kctl.spark.engine.session import SparkOptions


@dataclass(frozen=True)
class LocalOptions:
    """Options of the local engine, which runs tasks in processes of this machine."""

    workers: int = 0
    """Worker processes; 0 for one per core that this process may use."""

    @property
    def num_workers(self) -> int:
        """The number of worker processes."""
        return self.workers or _num_cores()


def _num_cores() -> int:
    """The cores that this process may use; on systems without affinity (macOS), all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


EngineOptions = SparkOptions | LocalOptions
