"""Tasks that fail, as functions that workers of both engines can import."""

import errno
import os
import signal
import time
from pathlib import Path

from kctl.spark.execution.task import run_task
from kctl.spark.planning.plan import ExportTask
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.publishing.staging import Staging
from kctl.spark.writing.results import TaskResult


def witness(settings: TaskSettings) -> Path:
    """A file beside the export directory."""
    return Path(settings.staging).parents[1] / "witness"


def dies_once(task: ExportTask, settings: TaskSettings) -> TaskResult:
    """Leaves half a file and dies at the first attempt."""
    if not witness(settings).exists():
        witness(settings).touch()
        with Staging(Path(settings.staging)).attempt(task.index) as directory:
            (directory / "part-00000-0000.parquet").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    return run_task(task, settings)


def always_dies(task: ExportTask, settings: TaskSettings) -> TaskResult:
    """Dies at every attempt, and counts them."""
    with witness(settings).open("a") as attempts:
        attempts.write(".")
    os.kill(os.getpid(), signal.SIGKILL)
    return run_task(task, settings)


def disk_full(task: ExportTask, settings: TaskSettings) -> TaskResult:
    """Finds no space."""
    raise OSError(errno.ENOSPC, "No space left on device", settings.staging)


def waits(task: ExportTask, settings: TaskSettings) -> TaskResult:
    """Leaves an attempt behind and does not end."""
    Path(settings.staging, "attempts", f"half-{task.index}").mkdir()
    witness(settings).write_text(str(os.getpid()))
    time.sleep(300)
    return run_task(task, settings)


def waits_for_release(task: ExportTask, settings: TaskSettings) -> TaskResult:
    """Runs when the witness exists."""
    while not witness(settings).exists():
        time.sleep(0.02)
    return run_task(task, settings)
