"""Our broker and Apache Kafka, running side by side for a benchmark."""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest
from tests.support.broker import running_broker
from tests.support.real_kafka import running_kafka

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class MeasuredBroker:
    """A running broker and the resources its process has used."""

    bootstrap_servers: str
    pid: int

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND

    def resident_mb(self) -> float:
        """Resident memory now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_BYTES / 2**20

    def reset_peak(self) -> None:
        """Let `peak_mb` begin again."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_mb(self) -> float:
        """The largest resident memory since `reset_peak`."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def both_brokers(
    only_ours: Mapping[str, object] | None = None,
    only_kafka: Mapping[str, object] | None = None,
    **settings: object,
) -> Iterator[tuple[MeasuredBroker, MeasuredBroker]]:
    """Our broker and Apache Kafka with the same settings on the same disk.

    `only_ours` and `only_kafka` are settings in which they differ, such as ports.
    """
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory:
        ours, theirs = Path(directory, "ours"), Path(directory, "theirs")
        ours.mkdir()
        theirs.mkdir()
        own = {"group_initial_rebalance_delay_ms": 0} | settings | dict(only_ours or {})
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        dotted |= only_kafka or {}
        with (
            running_broker(ours, **own) as broker,
            running_kafka(theirs, settings=dotted) as kafka,
        ):
            yield (
                MeasuredBroker(broker.bootstrap_servers, broker.server.process.pid),
                MeasuredBroker(kafka.bootstrap_servers, kafka_pid(theirs)),
            )


def kafka_pid(directory: Path) -> int:
    """The process whose command line names this cluster's server.properties."""
    wanted = str(directory / "server-1.properties").encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "cmdline").read_bytes().split(b"\0"):
                    return int(entry.name)
            except OSError:  # it has just ended
                continue
    raise RuntimeError(f"no process runs {wanted.decode()}")


async def until_metadata_is_answered(bootstrap_servers: str, since_s: float) -> float:
    """Seconds from `since_s` (time.monotonic) until a client gets its first Metadata response."""
    while True:
        try:
            async with Client(bootstrap_servers, connect_timeout_s=1) as client:
                await client.send(MetadataRequest(topics=None))
                return time.monotonic() - since_s
        except OSError:
            time.sleep(0.005)  # noqa: ASYNC251  # nothing else runs here
