"""Apache Kafka for development clusters: its jars from Maven, and how its classes are run.

The jars are downloaded once, to `~/.cache/kctl/kafka-<version>` (or `$XDG_CACHE_HOME`).
"""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kctl.cli.errors import CliError
from kctl.java import find_java

VERSION = "3.9.1"
"""The last release line that can use a ZooKeeper."""
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kctl.dev</groupId>
  <artifactId>kafka</artifactId>
  <version>{VERSION}</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
      <version>{VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId>
      <version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
_LOG4J = """\
log4j.rootLogger=${kctl.kafka.log}, err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_MAIN_CLASS = "kafka.Kafka"
_STARTED = re.compile(r"\[KafkaServer id=\d+\] started")
_PROBLEM = re.compile(r"^\[[^]]*\] (?:ERROR|FATAL) .*|^\S*(?:Exception|Error): .*", re.MULTILINE)
_START_TIMEOUT_S = 120
_UNREGISTER_TIMEOUT_S = 60
_POLL_S = 0.05


def kafka_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the jars are, whether they were downloaded or not."""
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kctl" / f"kafka-{VERSION}"


def download_kafka(home: Path | None = None) -> Path:
    """The directory of the jars, downloaded if it is missing; CliError if that is not possible."""
    home = home or kafka_home()
    if (home / "libs").is_dir():
        return home / "libs"
    if (maven := shutil.which("mvn")) is None:
        raise CliError(
            "Maven is not installed: it downloads Apache Kafka",
            "install Maven (mvn must be on the PATH), or omit --kafka",
        )
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f"{home.name}.") as draft:
        place = Path(draft, "kafka")
        place.mkdir()
        (place / "pom.xml").write_text(_POM)
        (place / "log4j.properties").write_text(_LOG4J)
        goal = ["dependency:copy-dependencies", "-DoutputDirectory=libs"]
        done = subprocess.run(  # noqa: S603
            [maven, "-q", "-B", *goal], cwd=place, capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines() or ["no reason given"]
            raise CliError(f"Maven cannot download Apache Kafka {VERSION}", lines[0])
        # Renamed when it is complete: another kctl may download it at the same moment.
        if not (home / "libs").is_dir():
            shutil.rmtree(home, ignore_errors=True)
            place.rename(home)
    return home / "libs"


def kafka_command(
    main_class: str, *args: str, heap: str = "512m", log_level: str = "WARN"
) -> list[str]:
    """The command line that runs a class of Kafka's jars, which are downloaded if missing."""
    libs = download_kafka()
    return [
        str(find_java().executable),
        f"-Xmx{heap}",
        f"-Dkctl.kafka.log={log_level}",
        f"-Dlog4j.configuration=file:{libs.parent}/log4j.properties",
        "-cp",
        f"{libs}/*",
        main_class,
        *args,
    ]


@dataclass(frozen=True)
class StartingKafka:
    """A process of Apache Kafka, and where its part of the log file begins."""

    process: subprocess.Popen[bytes]
    log_file: Path
    log_position: int
    address: str

    def wait_until_started(self) -> str:
        """The `host:port` it listens on; CliError with the reason from its log if it fails."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            if _STARTED.search(self._log()):
                return self.address
            time.sleep(_POLL_S)
        problems = _PROBLEM.findall(self._log())
        raise CliError("Apache Kafka did not start", problems[-1] if problems else self._where())

    def detach(self) -> None:
        """Let the process outlive this command: Popen must not warn that it still runs."""
        self.process.returncode = 0

    def _log(self) -> str:
        with self.log_file.open("rb") as log:
            log.seek(self.log_position)
            return log.read().decode(errors="replace")

    def _where(self) -> str:
        return f"see {self.log_file}"


async def until_unregistered(zookeeper: str, broker_id: int) -> None:
    """Return when no broker is registered under this id; CliError after a minute.

    Apache Kafka ends at start if its znode is left from a session that has not expired yet, which
    is so for seconds after it was killed. Our brokers wait for it themselves.
    """
    from kctl.admin.metadata_place import zookeeper_place  # imported here: kazoo is slow to import

    path = f"/brokers/ids/{broker_id}"
    deadline_s = time.monotonic() + _UNREGISTER_TIMEOUT_S
    async with zookeeper_place(zookeeper, _UNREGISTER_TIMEOUT_S).opened(create=True) as store:
        while await store.exists(path):
            if time.monotonic() > deadline_s:
                raise CliError(
                    f"another broker is registered as broker {broker_id}",
                    f"kctl zk get {path} -z {zookeeper} shows it",
                )
            await asyncio.sleep(_POLL_S)


def start_kafka(properties: Path, address: str, log_file: Path) -> StartingKafka:
    """Start a broker in a session of its own, so that Ctrl-C in this terminal does not end it."""
    command = kafka_command(_MAIN_CLASS, str(properties), log_level="INFO")
    with log_file.open("ab") as log:
        position = log.tell()
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    return StartingKafka(process, log_file, position, address)
