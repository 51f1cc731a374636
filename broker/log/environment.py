"""What every log of a broker is given: a disk, a clock, and whom to tell when the disk fails."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from broker.clock import Clock, SystemClock
from broker.log.config import ProducerStateConfig
from broker.log.files import DISK, FileSystem


def _nobody(log_dir: Path, error: OSError) -> None:
    """Nobody is told; the caller sees the exception anyway."""


@dataclass(frozen=True, slots=True)
class LogEnvironment:
    """`on_failure` hears of every failed write, with the log directory that must go offline."""

    fs: FileSystem = DISK
    clock: Clock = field(default_factory=SystemClock)
    producer_state: ProducerStateConfig = field(default_factory=ProducerStateConfig)
    on_failure: Callable[[Path, OSError], None] = _nobody
