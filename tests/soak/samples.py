"""What is sampled of brokers under a soak load, and whether it levels off."""

import contextlib
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from tests.support.processes import ServerProcess


@dataclass(frozen=True)
class Sample:
    """One row: the state of all brokers together, and the waits since the sample before."""

    second: int
    resident_mb: float
    """Memory of all brokers."""
    descriptors: int
    """Open files and connections of all brokers."""
    longest_ack_s: float
    """The slowest acknowledgement of the steady producer."""
    longest_metadata_s: float
    """The slowest response to a Metadata request on an idle connection."""
    num_churned: int
    """Topics, groups, members, transactions and sets of connections that came and went so far."""
    num_errors: int
    """Steps of that load that failed so far."""

    @classmethod
    def header(cls) -> str:
        """Names of the columns."""
        return ",".join(field.name for field in fields(cls))

    def row(self) -> str:
        """The values as a line."""
        values = (getattr(self, field.name) for field in fields(self))
        return ",".join(f"{v:.2f}" if isinstance(v, float) else str(v) for v in values)


def resident_mb(server: ServerProcess) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def num_descriptors(server: ServerProcess) -> int:
    """Open file descriptors of a process."""
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


@dataclass(frozen=True)
class Descriptors:
    """What the descriptors of some processes are open on."""

    sockets: int
    files: int
    """Files in log directories."""
    deleted: tuple[str, ...]
    """Files that were deleted: their space is not free before they are closed."""

    @classmethod
    def of(cls, servers: Iterable[ServerProcess], directory: Path) -> "Descriptors":
        """The descriptors of these servers; files count if they are in the directory."""
        targets = [target for server in servers for target in _targets(server.process.pid)]
        files = [target for target in targets if target.startswith(f"{directory}/data-")]
        return cls(
            sum(target.startswith("socket:") for target in targets),
            len(files),
            tuple(target for target in files if target.endswith("(deleted)")),
        )


def _targets(pid: int) -> Iterator[str]:
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            yield str(descriptor.readlink())


SOCKET_SLACK = 30
"""Brokers connect to each other when they first need to: markers, forwarded requests."""


def leaked(before: Descriptors, after: Descriptors, num_files: int) -> list[str]:
    """What the load has left open, once it has ended and everything it made was deleted.

    How many descriptors are open under load says little: connections come and go, and files are
    closed once a minute. At rest the numbers are exact: no deleted file is open, no file on disk
    is open more than once, and there are as many connections as before the load.
    """
    problems = []
    if after.deleted:
        problems.append(f"{len(after.deleted)} deleted files are open, {after.deleted[0]}")
    if after.files > num_files:
        problems.append(f"{after.files} descriptors of {num_files} files")
    if after.sockets > before.sockets + SOCKET_SLACK:
        problems.append(f"sockets: {before.sockets} before the load, {after.sockets} after it")
    return problems


SLACK = {"resident_mb": 20.0, "longest_ack_s": 2.0, "longest_metadata_s": 2.0}
"""By column: how much the last third may exceed the earlier thirds, in addition to 10 %."""


def growing(samples: list[Sample]) -> list[str]:
    """The columns that have not levelled off, each with its medians of the three thirds."""
    third = len(samples) // 3
    problems = []
    for column, slack in SLACK.items():
        values = [float(getattr(sample, column)) for sample in samples]
        thirds = [values[:third], values[third : 2 * third], values[2 * third :]]
        medians = [statistics.median(part) for part in thirds]
        if medians[2] > 1.1 * max(medians[:2]) + slack:
            problems.append(f"{column}: {' → '.join(f'{value:.1f}' for value in medians)}")
    return problems
