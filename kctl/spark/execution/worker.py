"""A worker process of the local engine: runs the tasks it receives, one at a time.

`main` serves one end of a socket pair, whose number is its argument. The driver sends (function,
task, settings) and gets back None, or a `TaskFailure`. The result of a task is in the staging
directory, as with Spark.
"""

import errno
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from kctl.cli.errors import CliError
from kctl.spark.execution.task import run_task  # noqa: F401 - loaded before the first task
from kctl.spark.planning.plan import ExportTask
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.writing.results import TaskResult

RunTask = Callable[[ExportTask, TaskSettings], TaskResult]


@dataclass(frozen=True)
class TaskFailure:
    """Why an attempt at a task failed."""

    reason: str
    is_disk_full: bool = False
    is_retriable: bool = False
    """Whether another attempt may succeed: not if the data or the settings are the reason."""

    @classmethod
    def of(cls, error: Exception) -> "TaskFailure":
        """The failure as text."""
        is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC
        is_retriable = isinstance(error, OSError) and not is_full
        return cls(str(error) or type(error).__name__, is_full, is_retriable)


def work(connection: "Connection[Any, Any]") -> None:
    """Run tasks until the driver closes the connection.

    The process ends at once when the driver is gone, even in the middle of a task: a driver that
    was killed cannot stop its workers.
    """
    received: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def receive() -> None:
        try:
            while True:
                received.put(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)

    threading.Thread(target=receive, daemon=True).start()
    while True:
        connection.send(_attempt(received.get()))


def _attempt(message: bytes) -> TaskFailure | None:
    try:
        run, task, settings = pickle.loads(message)  # noqa: S301 - from our own driver
        run(task, settings)
    except CliError as error:
        return TaskFailure(error.message)
    except Exception as error:  # noqa: BLE001 - sent to the driver
        return TaskFailure.of(error)
    return None


def main() -> None:
    """Serve the socket whose number is the only argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides
    work(Connection(int(sys.argv[1])))
