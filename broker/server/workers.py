"""`kctl-broker --workers N`: N brokers on one machine, a core for each, and their supervisor.

One broker uses one core for requests. Workers are whole brokers of one cluster: clients and other
brokers see N brokers. All get the settings of one file, with these differences, by number from 0:

    broker.id               the configured one plus the number; without one, each generates its own
    listeners, advertised.listeners, admin.listeners
                            port plus number times step; the step is the smallest that makes all
                            ports different, 1 for a single listener; port 0 stays 0
    log.dirs                the subdirectory worker-<number> of each directory
    broker.rack             the host name, unless it is set: replicas spread over machines

The supervisor forks the workers after it has loaded all code, so that they share that memory and
start without loading it again. It restarts a worker that ends, after a delay that grows if the
worker ends soon again. A worker that cannot even start for the first time ends all of them: that is
a wrong setting. SIGTERM or SIGINT to the supervisor stops all; if the supervisor dies, its workers
stop as well, because each holds the end of a pipe from it.
"""

import gc
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, Protocol
from urllib.parse import urlsplit

from broker.config import BrokerConfig, ConfigError
from broker.config.listeners import Listener, Listeners, listeners_text
from broker.server.log_format import configure_logging

logger = logging.getLogger(__name__)

MAX_WORKERS: Final = 64
_MAX_PORT: Final = 65535
_META_PROPERTIES: Final = "meta.properties"
_FIRST_DELAY_S: Final = 1.0
_MAX_DELAY_S: Final = 30.0
_GOOD_LIFE_S: Final = 60.0
"""A worker that lived this long is restarted after the first delay again."""


class Serve(Protocol):
    """Runs a broker until it ends."""

    def __call__(self, number: int, alive: int, report_started: Callable[[], object]) -> None:
        """Run the worker of this number; SystemExit with its status if that is not 0.

        `alive` is a descriptor that reaches its end when the supervisor has died.
        `report_started` is to be called when the broker serves clients.
        """


# --- settings -------------------------------------------------------------------------------------


def check_workers(config: BrokerConfig, num_workers: int) -> None:
    """ConfigError if these settings cannot be shared by workers."""
    if not 1 <= num_workers <= MAX_WORKERS:
        raise ConfigError(f"--workers={num_workers}: must be between 1 and {MAX_WORKERS}")
    if not config.zookeeper_connect:
        raise ConfigError(
            f"--workers={num_workers} needs zookeeper.connect: without it a broker keeps its "
            "metadata in a file of its own and is alone"
        )
    for directory in config.log_directories:
        if (directory / _META_PROPERTIES).exists():
            raise ConfigError(
                f"log.dirs: {directory} holds the data of a broker without --workers; move it to "
                f"{_log_dir(directory, 0)}, and broker 0 of the workers will continue with it"
            )


def worker_settings(config: BrokerConfig, number: int, num_workers: int) -> dict[str, str]:
    """The settings in which worker `number` differs from the file."""
    shift = number * _port_step(config, num_workers)
    own = {
        "listeners": _shifted(config.listeners, shift),
        "log.dirs": ",".join(str(_log_dir(path, number)) for path in config.log_directories),
    }
    if "advertised.listeners" in config.originals:
        own["advertised.listeners"] = _shifted(config.advertised_listeners, shift)
    if config.admin_listeners is not None:
        own["admin.listeners"] = _shifted_url(config.admin_listeners, shift)
    if config.broker_id >= 0:
        own["broker.id"] = str(config.broker_id + number)
    if config.broker_rack is None:
        own["broker.rack"] = socket.gethostname()
    return own


def _log_dir(directory: Path, number: int) -> Path:
    return directory / f"worker-{number}"


def _port_step(config: BrokerConfig, num_workers: int) -> int:
    """The smallest distance of the ports of two workers with which no port is used twice."""
    ports = [listener.port for listener in config.listeners if listener.port]
    if config.admin_listeners is not None:
        admin = urlsplit(config.admin_listeners).port
        ports += [admin] if admin else []
    step = 1
    while len({port + n * step for port in ports for n in range(num_workers)}) < (
        len(set(ports)) * num_workers
    ):
        step += 1
    highest = max(ports, default=0) + (num_workers - 1) * step
    if highest > _MAX_PORT:
        raise ConfigError(f"--workers={num_workers}: port {highest} is above {_MAX_PORT}")
    return step


def _shifted(listeners: Listeners, shift: int) -> str:
    moved = tuple(
        Listener(one.name, one.host, one.port + shift if one.port else 0) for one in listeners
    )
    return listeners_text(moved) or ""


def _shifted_url(url: str, shift: int) -> str:
    port = urlsplit(url).port
    return f"{url.rpartition(':')[0]}:{port + shift}" if port else url


# --- processes ------------------------------------------------------------------------------------


@dataclass
class Worker:
    """One worker, over all of its lives.

    Field `pid`: its process; None while no process runs.
    Field `delay_s`: how long its next restart waits. `start_at_s`: when it is started.
    """

    number: int
    pid: int | None = None
    started_s: float = 0.0
    start_at_s: float = 0.0
    delay_s: float = _FIRST_DELAY_S
    has_started: bool = False


class Supervisor:
    """Starts the workers, restarts those that end, and stops all on one signal.

    Field `_is_stopping`: a signal arrived, or a worker could not start; none is started any more.
    Field `_status`: the exit status so far.
    Field `_alive`: a pipe that nothing is written to. The supervisor alone has its writing end, so
      the workers see its end when the supervisor is gone.
    Field `_ready`: a pipe through which each worker reports its number when it serves clients.
    """

    def __init__(self, num_workers: int, serve: Serve, *, verbose: bool) -> None:
        self.workers = [Worker(number) for number in range(num_workers)]
        self._serve = serve
        self._verbose = verbose
        self._is_stopping = False
        self._status = 0
        self._alive = os.pipe()
        self._ready = os.pipe()
        self._wakeup = socket.socketpair()

    def run(self) -> int:
        """Run until all workers have ended; returns the exit status."""
        for end in self._wakeup:
            end.setblocking(False)
        os.set_blocking(self._ready[0], False)
        signal.set_wakeup_fd(self._wakeup[1].fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop_on_signal)
        signal.signal(signal.SIGCHLD, _note)
        with selectors.DefaultSelector() as selector:
            selector.register(self._wakeup[0], selectors.EVENT_READ)
            selector.register(self._ready[0], selectors.EVENT_READ)
            while not self._is_stopping or any(worker.pid for worker in self.workers):
                self._start_due()
                selector.select(self._seconds_to_next_start())
                self._drain()
                self._reap()
        logger.info("all workers have ended")
        return self._status

    def _stop_on_signal(self, _number: int, _frame: object) -> None:
        self._stop()

    def _stop(self) -> None:
        """Ask all workers to end, as SIGTERM does."""
        self._is_stopping = True
        for worker in self.workers:
            if worker.pid is not None:
                os.kill(worker.pid, signal.SIGTERM)

    # --- starting ------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now_s = time.monotonic()
        for worker in self.workers:
            if worker.pid is None and worker.start_at_s <= now_s and not self._is_stopping:
                self._start(worker)

    def _seconds_to_next_start(self) -> float | None:
        waiting = [worker.start_at_s for worker in self.workers if worker.pid is None]
        if self._is_stopping or not waiting:
            return None
        return max(min(waiting) - time.monotonic(), 0.0)

    def _start(self, worker: Worker) -> None:
        worker.started_s = time.monotonic()
        # A signal between fork and the child's own handlers must not run the supervisor's in it.
        signals = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        pid = os.fork()
        if not pid:
            self._become(worker.number, signals)
        worker.pid = pid
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        logger.info("started worker=%s pid=%s", worker.number, pid)
        if self._is_stopping:  # the signal came in between
            os.kill(pid, signal.SIGTERM)

    def _become(self, number: int, signals: set[signal.Signals]) -> NoReturn:
        """The rest of a worker's process."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for inherited in signals:
                signal.signal(inherited, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
            os.close(self._alive[1])
            os.close(self._ready[0])
            configure_logging(verbose=self._verbose, worker=number)
            self._serve(number, self._alive[0], partial(os.write, self._ready[1], bytes([number])))
            status = 0
        except SystemExit as ended:
            status = _exit_status(ended)
        except BaseException:
            logger.exception("worker failed")
        finally:
            logging.shutdown()
            os._exit(status)

    # --- events --------------------------------------------------------------------------------

    def _drain(self) -> None:
        try:
            while self._wakeup[0].recv(4096):
                pass
        except BlockingIOError:
            pass
        try:
            for number in os.read(self._ready[0], MAX_WORKERS):
                self.workers[number].has_started = True
        except BlockingIOError:
            pass

    def _reap(self) -> None:
        for worker in self.workers:
            if worker.pid is None:
                continue
            pid, wait_status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                worker.pid = None
                self._ended(worker, os.waitstatus_to_exitcode(wait_status))

    def _ended(self, worker: Worker, status: int) -> None:
        if self._is_stopping:
            logger.info("ended worker=%s status=%s", worker.number, status)
            self._status = self._status or int(status not in (0, -signal.SIGTERM))
        elif not worker.has_started:
            logger.error("stopping: could not start worker=%s status=%s", worker.number, status)
            self._status = 1
            self._stop()
        else:
            if time.monotonic() - worker.started_s >= _GOOD_LIFE_S:
                worker.delay_s = _FIRST_DELAY_S
            logger.error(
                "ended unexpectedly, restarting worker=%s status=%s in_s=%g",
                worker.number,
                status,
                worker.delay_s,
            )
            worker.start_at_s = time.monotonic() + worker.delay_s
            worker.delay_s = min(worker.delay_s * 2, _MAX_DELAY_S)


def run_workers(config: BrokerConfig, num_workers: int, serve: Serve, *, verbose: bool) -> NoReturn:
    """Run workers until they have ended, and exit; ConfigError if they cannot share the settings.

    The settings of every worker are checked before the first one starts.
    """
    check_workers(config, num_workers)
    for number in range(num_workers):
        worker_settings(config, number, num_workers)
    gc.collect()
    gc.freeze()  # what the collector does not touch stays shared with the workers
    sys.exit(Supervisor(num_workers, serve, verbose=verbose).run())


def _note(_number: int, _frame: object) -> None:
    """SIGCHLD only has to wake the supervisor."""


def _exit_status(ended: SystemExit) -> int:
    if isinstance(ended.code, str):
        sys.stderr.write(f"{ended.code}\n")
        return 1
    return int(ended.code or 0)
