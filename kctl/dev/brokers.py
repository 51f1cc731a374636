"""The brokers that `kctl dev` has started: one directory each, with settings, data, log and pid.

<state>/broker-1/server.properties   what it was started with
                 data/               its log directory
                 broker.log          what it says
                 broker.pid          its process, while it runs
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kctl.dev.launch import start_broker, started_address, wait_until_started
from kctl.dev.processes import DevProcess
from kctl.errors import CliError


def state_directory() -> Path:
    """Where development brokers live: `$XDG_STATE_HOME/kctl/dev`."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "kctl" / "dev"


@dataclass(frozen=True)
class DevBroker:
    """One of them, running or not."""

    broker_id: int
    directory: Path

    @property
    def properties_file(self) -> Path:
        """Its settings."""
        return self.directory / "server.properties"

    @property
    def data(self) -> Path:
        """Its log directory."""
        return self.directory / "data"

    @property
    def log_file(self) -> Path:
        """What it says."""
        return self.directory / "broker.log"

    @property
    def process(self) -> DevProcess:
        """Its process, as it is known."""
        name = f"broker {self.broker_id}"
        return DevProcess(name, self.properties_file, self.directory / "broker.pid")

    @property
    def is_in_cluster(self) -> bool:
        """Whether its metadata is in a ZooKeeper."""
        settings = self.properties_file
        return settings.exists() and "\nzookeeper.connect=" in settings.read_text()

    def pid(self) -> int | None:
        """Its process id, if it runs."""
        return self.process.pid()

    def address(self) -> str | None:
        """Where it listens, if it runs."""
        return started_address(self.log_file) if self.pid() else None

    def write_settings(self, settings: Mapping[str, str]) -> None:
        """Write server.properties for the next start."""
        self.directory.mkdir(parents=True, exist_ok=True)
        own = {"broker.id": str(self.broker_id), "log.dirs": str(self.data)}
        lines = [f"{key}={value}\n" for key, value in (own | dict(settings)).items()]
        self.properties_file.write_text("".join(lines))

    def launch(self) -> subprocess.Popen[bytes]:
        """Start it with the settings it has, without waiting; CliError if it cannot be."""
        if self.pid() is not None:
            raise CliError(f"broker {self.broker_id} is running already", "see kctl dev status")
        if not self.properties_file.exists():
            raise CliError(f"there is no broker {self.broker_id}", "kctl dev up makes one")
        process = start_broker([str(self.properties_file)], self.log_file)
        self.process.note(process.pid)
        return process

    def start(self) -> str:
        """Start it; gives its address. CliError with its last words if it does not start."""
        (address,) = start_all([self])
        return address

    def stop(self, *, by: signal.Signals = signal.SIGTERM) -> bool:
        """End it and wait until it has ended; False if it was not running."""
        if not self.process.signal(by):
            return False
        self.process.wait_until_ended()
        return True

    def delete(self) -> None:
        """Remove all its files; it must not run."""
        shutil.rmtree(self.directory, ignore_errors=True)


def start_all(brokers: Sequence[DevBroker]) -> list[str]:
    """Start them at the same time; gives their addresses. CliError if one does not start."""
    launched: list[subprocess.Popen[bytes]] = []
    try:
        launched += [broker.launch() for broker in brokers]
        return [
            wait_until_started(process, broker.log_file)
            for broker, process in zip(brokers, launched, strict=True)
        ]
    finally:
        for process in launched:
            process.returncode = 0  # it outlives this command: Popen need not look after it


def stop_all(brokers: Sequence[DevBroker]) -> list[DevBroker]:
    """Stop them at the same time; gives those that were running."""
    running = [broker for broker in brokers if broker.process.signal(signal.SIGTERM)]
    for broker in running:
        broker.process.wait_until_ended()
    return running


def dev_broker(state: Path, broker_id: int) -> DevBroker:
    """The broker with this id, whether it exists or not."""
    return DevBroker(broker_id, state / f"broker-{broker_id}")


def dev_brokers(state: Path) -> list[DevBroker]:
    """All that were made and not deleted, by id."""
    ids = sorted(
        int(path.name.removeprefix("broker-"))
        for path in state.glob("broker-*")
        if path.name.removeprefix("broker-").isdigit()
    )
    return [dev_broker(state, broker_id) for broker_id in ids]
