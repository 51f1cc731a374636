"""The ZooKeeper of a development cluster: the real server, from PySpark's jars.

<state>/zookeeper/zoo.cfg         its settings, including the port
                  data/           snapshots and transaction logs
                  zookeeper.log   its log, appended to at every start
                  zookeeper.pid   its process id, while it runs
"""

import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from kctl.cli.errors import CliError
from kctl.dev.processes import DevProcess
from kctl.java import find_java, pyspark_jars

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# A tick of 500 ms allows session timeouts of one second. The default for the longest one would be
# 20 ticks, and ZooKeeper shortens longer ones without a word. The admin web server is not needed.
ZOO_CFG = """\
tickTime=500
dataDir={directory}/data
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
maxSessionTimeout=3600000
admin.enableServer=false
"""
# Little heap and no optimising compiler, because the load is small. Data must survive a crash of
# the process, but not of the machine: no fsync.
JAVA_OPTIONS = (
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dzookeeper.forceSync=no",
    "-Dlog4j2.level=INFO",  # the default logs errors only
)
_START_TIMEOUT_S = 60
_POLL_S = 0.02


@dataclass(frozen=True)
class DevZooKeeper:
    """The ZooKeeper of a state directory, running or not."""

    directory: Path

    @property
    def config_file(self) -> Path:
        """Its settings."""
        return self.directory / "zoo.cfg"

    @property
    def log_file(self) -> Path:
        """Its log messages."""
        return self.directory / "zookeeper.log"

    @property
    def process(self) -> DevProcess:
        """Its process, running or not."""
        return DevProcess("ZooKeeper", self.config_file, self.directory / "zookeeper.pid")

    @property
    def exists(self) -> bool:
        """Whether the state directory has a ZooKeeper."""
        return self.config_file.exists()

    @property
    def address(self) -> str:
        """The `host:port` it listens on while it is running."""
        found = re.search(r"^clientPort=(\d+)$", self.config_file.read_text(), re.MULTILINE)
        if found is None:
            raise CliError(
                f"{self.config_file} does not contain clientPort", "kctl dev down --delete-data"
            )
        return f"127.0.0.1:{found[1]}"

    def ensure_running(self, port: int | None = None) -> None:
        """Start it on its previous port unless it is running; CliError if it does not start.

        `port` is for a new one; CliError if it exists on another port, which brokers know.
        """
        if port and self.exists and not self.address.endswith(f":{port}"):
            raise CliError(
                f"the ZooKeeper of this cluster uses {self.address}",
                "omit --zookeeper-port, or delete the cluster: kctl dev down --delete-data",
            )
        if self.process.pid() is not None:
            return
        if not self.exists:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.config_file.write_text(
                ZOO_CFG.format(directory=self.directory, port=port or free_port())
            )
        with self.log_file.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603
                zookeeper_command(self.config_file),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.process.note(process.pid)
        try:
            self._wait_until_it_listens(process)
        finally:
            process.returncode = (
                0  # it outlives this command: Popen must not warn that it still runs
            )

    def _wait_until_it_listens(self, process: subprocess.Popen[bytes]) -> None:
        host, _, port = self.address.partition(":")
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and process.poll() is None:
            try:
                socket.create_connection((host, int(port)), 0.2).close()
            except OSError:
                time.sleep(_POLL_S)
            else:
                return
        raise CliError("ZooKeeper did not start", f"see {self.log_file}")

    def stop(self) -> bool:
        """Stop it and wait until it has ended; False if it was not running."""
        if not self.process.signal(signal.SIGTERM):
            return False
        self.process.wait_until_ended()
        return True

    def delete(self) -> None:
        """Delete its files; it must not be running."""
        shutil.rmtree(self.directory, ignore_errors=True)


def dev_zookeeper(state: Path) -> DevZooKeeper:
    """The ZooKeeper of this state directory, whether it exists or not."""
    return DevZooKeeper(state / "zookeeper")


def zookeeper_command(config_file: Path) -> list[str]:
    """The command line of a ZooKeeper; CliError if Java or PySpark is not installed."""
    java = str(find_java().executable)
    return [java, *JAVA_OPTIONS, "-cp", f"{pyspark_jars()}/*", MAIN_CLASS, str(config_file)]


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
