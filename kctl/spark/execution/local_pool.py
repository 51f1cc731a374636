"""The local engine: runs tasks in worker processes on this machine, without Spark.

One thread per worker sends it a task, waits for the answer and takes the next task. A worker that
dies (killed, out of memory) is replaced and its task is tried again, as Spark does.
"""

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Final

from kctl.cli.errors import ExitStatus
from kctl.cli.interrupts import ctrl_c_noted
from kctl.spark.engine.jobs import DiskFull, JobFailed
from kctl.spark.execution.worker import RunTask, TaskFailure
from kctl.spark.planning.plan import ExportTask
from kctl.spark.planning.settings import TaskSettings

ATTEMPTS: Final = 3
"""As many as Spark makes with our default master."""
_POLL_S: Final = 0.1
# Not `-m`: classes of a module that runs as __main__ cannot be sent.
_MAIN: Final = "from kctl.spark.execution.worker import main; main()"


class _Worker:
    """A worker process and the connection to it."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        # In a process group of its own: Ctrl-C at a terminal is the driver's to handle.
        command = [sys.executable, "-P", "-c", _MAIN, str(theirs.fileno())]
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            process_group=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_import_paths())},
        )
        theirs.close()

    def run(self, run: RunTask, task: ExportTask, settings: TaskSettings) -> TaskFailure | None:
        """Run a task; TaskFailure if it fails or the process dies."""
        try:
            self._connection.send((run, task, settings))
            failure: TaskFailure | None = self._connection.recv()
        except (EOFError, OSError):
            return TaskFailure(f"a worker process {self._ending()}", is_retriable=True)
        return failure

    def _ending(self) -> str:
        status = self._process.wait()
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()

    def close(self) -> None:
        """End the process and wait for it."""
        self.kill()
        self._process.wait()
        self._connection.close()


class LocalPool:
    """Worker processes and the tasks that are left.

    `_todo`: (task, attempts made). `_running`: attempts at this moment. `_failure`: the first final
    failure, after which no task is started. All are guarded by `_lock`.
    """

    def __init__(self, run: RunTask, tasks: Sequence[ExportTask], settings: TaskSettings) -> None:
        self._run = run
        self._settings = settings
        self._todo = deque((task, 0) for task in tasks)
        self._running = 0
        self._failure: TaskFailure | None = None
        self._workers: list[_Worker] = []
        self._is_stopped = False
        self._lock = threading.Lock()

    def run_all(self, num_workers: int, look: Callable[[int], None]) -> None:
        """Run all tasks; meanwhile call `look` with the number of running tasks.

        JobFailed has a one-line reason. No worker is left, and none writes any more, when this
        returns or raises.
        """
        threads = [
            threading.Thread(target=self._serve, daemon=True)
            for _ in range(min(num_workers, len(self._todo)))
        ]
        with ctrl_c_noted() as interrupted, self._stopping(threads):
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads) and not (
                self._failure or interrupted.is_set()
            ):
                for thread in threads:
                    thread.join(_POLL_S / len(threads))
                look(self._running)
            if interrupted.is_set():
                raise JobFailed("interrupted", status=ExitStatus.INTERRUPTED)
        if self._failure is not None:
            raise _job_failed(self._failure)

    @contextmanager
    def _stopping(self, threads: Sequence[threading.Thread]) -> Iterator[None]:
        try:
            yield
        finally:
            with self._lock:
                self._is_stopped = True
                workers = list(self._workers)
            for worker in workers:
                worker.kill()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()

    def _serve(self) -> None:
        """Run tasks with one worker after another, until none is left."""
        worker: _Worker | None = None
        try:
            while (taken := self._take()) is not None:
                if worker is None or not worker.is_alive:
                    worker = self._replaced(worker)
                task, attempts = taken
                self._note(task, attempts + 1, worker.run(self._run, task, self._settings))
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits
            with self._lock:
                self._failure = self._failure or TaskFailure.of(error)
        finally:
            if worker is not None:
                worker.close()

    def _replaced(self, dead: _Worker | None) -> _Worker:
        if dead is not None:
            dead.close()
        worker = _Worker()
        with self._lock:
            if dead is not None:
                with suppress(ValueError):
                    self._workers.remove(dead)
            self._workers.append(worker)
            if self._is_stopped:
                worker.kill()
        return worker

    def _take(self) -> tuple[ExportTask, int] | None:
        with self._lock:
            if not self._todo or self._failure or self._is_stopped:
                return None
            self._running += 1
            return self._todo.popleft()

    def _note(self, task: ExportTask, attempts: int, failure: TaskFailure | None) -> None:
        with self._lock:
            self._running -= 1
            if failure is None or self._is_stopped:
                return
            if failure.is_retriable and attempts < ATTEMPTS:
                self._todo.append((task, attempts))
            elif self._failure is None:
                self._failure = failure


def _job_failed(failure: TaskFailure) -> JobFailed:
    if failure.is_disk_full:
        return DiskFull(f"the disk is full: {failure.reason}")
    return JobFailed(f"a task failed: {failure.reason}")


def _import_paths() -> list[str]:
    """This process' own search path; an empty entry is the working directory."""
    return [path or str(Path.cwd()) for path in sys.path]
