"""The brokers that `kctl dev` has started: one directory each, with settings, data, log and pid.

<state>/broker-1/server.properties   what it was started with
                 data/               its log directory
                 broker.log          what it says
                 broker.pid          its process, while it runs
"""

import os
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kctl.dev.launch import start_broker, started_address, wait_until_started
from kctl.errors import CliError

_STOP_TIMEOUT_S = 60
_POLL_S = 0.02


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
    def _pid_file(self) -> Path:
        return self.directory / "broker.pid"

    def pid(self) -> int | None:
        """Its process, if it runs; a number left by one that has ended is not believed."""
        try:
            pid = int(self._pid_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if str(self.properties_file).encode() in command else None

    def address(self) -> str | None:
        """Where it listens, if it runs."""
        return started_address(self.log_file) if self.pid() else None

    def write_settings(self, settings: Mapping[str, str]) -> None:
        """Write server.properties for the next start."""
        self.directory.mkdir(parents=True, exist_ok=True)
        own = {"broker.id": str(self.broker_id), "log.dirs": str(self.data)}
        lines = [f"{key}={value}\n" for key, value in (own | dict(settings)).items()]
        self.properties_file.write_text("".join(lines))

    def start(self) -> str:
        """Start it with the settings it has; gives its address. CliError if it cannot."""
        if self.pid() is not None:
            raise CliError(f"broker {self.broker_id} is running already", "see kctl dev status")
        if not self.properties_file.exists():
            raise CliError(f"there is no broker {self.broker_id}", "kctl dev up makes one")
        process = start_broker([str(self.properties_file)], self.log_file)
        self._pid_file.write_text(f"{process.pid}\n")
        try:
            return wait_until_started(process, self.log_file)
        finally:
            process.returncode = 0  # it outlives this command: Popen need not look after it

    def stop(self, *, by: signal.Signals = signal.SIGTERM) -> bool:
        """End it and wait until it has ended; False if it was not running."""
        pid = self.pid()
        if pid is None:
            return False
        os.kill(pid, by)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self.pid() == pid and not _is_zombie(pid):
            if time.monotonic() > deadline:
                raise CliError(
                    f"broker {self.broker_id} (process {pid}) does not end", "kctl dev kill"
                )
            time.sleep(_POLL_S)
        self._pid_file.unlink(missing_ok=True)
        return True

    def delete(self) -> None:
        """Remove all its files; it must not run."""
        shutil.rmtree(self.directory, ignore_errors=True)


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and only waits to be collected (by us, when we started it)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


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
