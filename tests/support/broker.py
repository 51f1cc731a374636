"""Our broker for tests: the real process, on a free port."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ServerProcess

STARTED = r"started broker\.id=\d+ listeners=\w+://([\w.]+:\d+)"


@dataclass(frozen=True)
class RunningBroker:
    """A broker that answers."""

    bootstrap_servers: str
    log_dir: Path
    server: ServerProcess

    def output(self) -> str:
        """What the broker has logged so far."""
        return self.server.log_file.read_text()


@contextmanager
def running_broker(directory: Path, **settings: object) -> Iterator[RunningBroker]:
    """Start a broker with its files in `directory`; `num_partitions=3` sets num.partitions."""
    with _running("broker", directory, settings) as broker:
        yield broker


@contextmanager
def running_metered_broker(directory: Path, **settings: object) -> Iterator[RunningBroker]:
    """The same with a broker that reports long turns of its event loop; see `metered_broker`."""
    with _running("tests.support.metered_broker", directory, settings) as broker:
        yield broker


@contextmanager
def _running(
    module: str, directory: Path, settings: Mapping[str, object]
) -> Iterator[RunningBroker]:
    log_dir = directory / "data"
    own = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": log_dir}
    wanted = own | {key.replace("_", "."): value for key, value in settings.items()}
    overrides = [f"--override={key}={value}" for key, value in wanted.items()]
    command = [sys.executable, "-m", module, *overrides]
    with ServerProcess(command, directory / "broker.log") as server:
        address = server.wait_for_line(STARTED, timeout_s=60)[1]
        yield RunningBroker(address, log_dir, server)
