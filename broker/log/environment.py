"""What all logs of a broker share: the file system, the clock, settings, and a failure callback."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from broker.clock import Clock, SystemClock
from broker.log.config import ProducerStateConfig
from broker.log.files import DISK, FileSystem
from broker.metrics.histogram import Histogram


def _ignore(log_dir: Path, error: OSError) -> None:
    """No callback: the caller still gets the exception."""


@dataclass(frozen=True, slots=True)
class LogEnvironment:
    """`on_failure` is called with the log directory and the error when its disk fails."""

    fs: FileSystem = DISK
    clock: Clock = field(default_factory=SystemClock)
    producer_state: ProducerStateConfig = field(default_factory=ProducerStateConfig)
    on_failure: Callable[[Path, OSError], None] = _ignore
    flush_times: Histogram = field(default_factory=Histogram)
    """How long flushes of logs took; written by several threads, so a count may get lost."""
