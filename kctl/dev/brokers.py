"""The brokers of `kctl dev`: a directory each, with settings, data, log and process id.

<state>/broker-1/server.properties   the settings it was started with
                 data/               its log directory
                 broker.log          its log, appended to at every start
                 broker.pid          its process id, while it runs
                 kafka               present if it is a broker of Apache Kafka, not one of ours
"""

import asyncio
import fcntl
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.log.layout import LOCK_FILE
from kctl.cli.client_properties import read_client_properties
from kctl.cli.errors import CliError
from kctl.cli.private_files import write_private
from kctl.cli.state_home import state_home
from kctl.dev.apache_kafka import VERSION, StartingKafka, start_kafka, until_unregistered
from kctl.dev.launch import StartingBroker, admin_url, start_broker, started_address
from kctl.dev.processes import DevProcess

_LISTENER = re.compile(r"^listeners=\w+://(\S+:\d+)", re.MULTILINE)


def state_directory(given: Path | None = None) -> Path:
    """The directory of the development brokers: as given, or `$XDG_STATE_HOME/kctl/dev`.

    Absolute, because brokers are started with it and found by it from any working directory.
    """
    if given is not None:
        return given.resolve()
    return state_home() / "dev"


@dataclass(frozen=True)
class DevBroker:
    """One broker, running or not."""

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
        """Its log messages."""
        return self.directory / "broker.log"

    @property
    def process(self) -> DevProcess:
        """Its process, running or not."""
        name = f"broker {self.broker_id}"
        return DevProcess(name, self.properties_file, self.directory / "broker.pid")

    @property
    def _kafka_mark(self) -> Path:
        return self.directory / "kafka"

    @property
    def is_kafka(self) -> bool:
        """Whether it is a broker of Apache Kafka."""
        return self._kafka_mark.exists()

    @property
    def software(self) -> str:
        """What it runs."""
        return f"Apache Kafka {VERSION}" if self.is_kafka else "kctl-broker"

    @property
    def is_in_cluster(self) -> bool:
        """Whether its metadata is in a ZooKeeper."""
        settings = self.properties_file
        return settings.exists() and "\nzookeeper.connect=" in settings.read_text()

    def pid(self) -> int | None:
        """Its process id, if it is running."""
        return self.process.pid()

    def address(self) -> str | None:
        """The `host:port` it listens on, if it is running."""
        if self.pid() is None:
            return None
        return self._own_listener() if self.is_kafka else started_address(self.log_file)

    def _own_listener(self) -> str | None:
        """The address in its settings: Apache Kafka gets a port there, never 0."""
        found = _LISTENER.search(self.properties_file.read_text())
        return found[1] if found else None

    def admin_url(self) -> str | None:
        """Where its metrics and health are served, if it is running."""
        has_port = self.pid() and "\nadmin.listeners=" in self.properties_file.read_text()
        return admin_url(self.log_file) if has_port else None

    def write_settings(self, settings: Mapping[str, str], *, is_kafka: bool = False) -> None:
        """Write server.properties for the next start, of our broker or of Apache Kafka.

        The data is the same for both, so that either can continue what the other has written.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        if is_kafka:
            self._kafka_mark.touch()
        else:
            self._kafka_mark.unlink(missing_ok=True)
        own = {"broker.id": str(self.broker_id), "log.dirs": str(self.data)}
        lines = [f"{key}={value}\n" for key, value in (own | dict(settings)).items()]
        write_private(self.properties_file, "".join(lines))  # it may have passwords

    def launch(self) -> StartingBroker | StartingKafka:
        """Start it with its settings, without waiting; CliError if that is not possible."""
        if self.pid() is not None:
            raise CliError(f"broker {self.broker_id} is already running", "see kctl dev status")
        if not self.properties_file.exists():
            raise CliError(f"there is no broker {self.broker_id}", "kctl dev up creates one")
        starting: StartingBroker | StartingKafka
        if self.is_kafka:
            address = self._own_listener() or ""
            settings = read_client_properties(self.properties_file)
            asyncio.run(until_unregistered(settings["zookeeper.connect"], self.broker_id))
            starting = start_kafka(self.properties_file, address, self.log_file)
        else:
            starting = start_broker([str(self.properties_file)], self.log_file)
        self.process.note(starting.process.pid)
        return starting

    def start(self) -> str:
        """Start it and return its address; CliError with the reason if it does not start."""
        (address,) = start_all([self])
        return address

    def stop(self, *, by: signal.Signals = signal.SIGTERM) -> bool:
        """Stop it and wait until it has ended; False if it was not running."""
        if not self.process.signal(by):
            return False
        self.process.wait_until_ended()
        return True

    def delete(self) -> None:
        """Delete its files; CliError if a process is using them."""
        if self.pid() is not None or self._is_data_locked():
            raise CliError(
                f"broker {self.broker_id} is running: {self.data} is in use",
                "stop its process first; nothing was deleted",
            )
        shutil.rmtree(self.directory, ignore_errors=True)

    def _is_data_locked(self) -> bool:
        """Whether a broker holds the lock of the log directory, whatever broker.pid says."""
        try:
            with (self.data / LOCK_FILE).open("r+b") as lock:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except (BlockingIOError, PermissionError):
            return True
        return False


def start_all(brokers: Sequence[DevBroker]) -> list[str]:
    """Start brokers at the same time; their addresses. CliError if one of them does not start."""
    launched: list[StartingBroker | StartingKafka] = []
    try:
        launched += [broker.launch() for broker in brokers]
        return [starting.wait_until_started() for starting in launched]
    finally:
        for starting in launched:
            starting.detach()


def stop_all(brokers: Sequence[DevBroker]) -> list[DevBroker]:
    """Stop brokers at the same time; returns those that were running."""
    running = [broker for broker in brokers if broker.process.signal(signal.SIGTERM)]
    for broker in running:
        broker.process.wait_until_ended()
    return running


def dev_broker(state: Path, broker_id: int) -> DevBroker:
    """The broker with this id, whether it exists or not."""
    return DevBroker(broker_id, state / f"broker-{broker_id}")


def dev_brokers(state: Path) -> list[DevBroker]:
    """All brokers that were created and not deleted, by id."""
    ids = sorted(
        int(path.name.removeprefix("broker-"))
        for path in state.glob("broker-*")
        if path.name.removeprefix("broker-").isdigit()
    )
    return [dev_broker(state, broker_id) for broker_id in ids]
