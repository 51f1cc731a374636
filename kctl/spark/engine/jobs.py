"""Spark jobs with progress reports, interruption, and one-line errors."""

import errno
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.interrupts import ctrl_c_noted

_POLL_S = 0.2
_CANCEL_S = 20


class JobFailed(CliError):
    """A job failed; the caller that cleans up adds a hint about what was kept."""


class DiskFull(JobFailed):
    """No space left: finished tasks are removed, because they take space."""


def run_job(context: Any, work: Callable[[], None], look: Callable[[int], None]) -> None:
    """Run `work`, which starts Spark jobs; meanwhile call `look` with the number of running tasks.

    JobFailed has a one-line reason. Ctrl-C cancels the jobs and waits until their tasks have ended,
    so that no task is still writing.
    """
    group = f"kctl-{uuid4().hex[:8]}"
    failure: list[Exception] = []

    def run() -> None:
        context.setJobGroup(group, "kctl spark-export", interruptOnCancel=True)
        try:
            work()
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits
            failure.append(error)

    # Py4J blocks while it waits for Java; in a separate thread, this one can report and cancel.
    job = threading.Thread(target=run, daemon=True)
    job.start()
    # An interrupt in the middle of a Py4J call would cause errors in Py4J.
    with ctrl_c_noted() as interrupted:
        while job.is_alive() and not interrupted.is_set():
            job.join(_POLL_S)
            look(running_tasks(context, group))
        if interrupted.is_set():
            _cancel(context, group, job)
            raise JobFailed("interrupted", status=ExitStatus.INTERRUPTED)
    if failure:
        raise explain(failure[0]) from failure[0]


def _cancel(context: Any, group: str, job: threading.Thread) -> None:
    """Cancel the jobs of a group and wait for their tasks, which end later than the job."""
    context.cancelJobGroup(group)
    deadline = time.monotonic() + _CANCEL_S
    job.join(_CANCEL_S)
    while running_tasks(context, group) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def running_tasks(context: Any, group: str) -> int:
    """The number of active tasks of a job group, from Spark's status tracker."""
    status = context.statusTracker()
    jobs = [status.getJobInfo(job) for job in status.getJobIdsForGroup(group)]
    stages = [status.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numActiveTasks for stage in stages if stage)


def explain(error: Exception) -> JobFailed:
    """The error of a worker in one line: the exception message in its traceback."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines()]
    raised = [line for line in lines if _is_exception(line)]
    reason = raised[0].partition(": ")[2] if raised else (lines or ["?"])[0]
    if f"[Errno {errno.ENOSPC}]" in text or "No space left" in text:
        return DiskFull(f"the disk is full: {reason}")
    return JobFailed(f"a task failed: {reason}")


def _is_exception(line: str) -> bool:
    name = line.partition(": ")[0]
    return (
        name.replace(".", "").isidentifier()
        and name.rpartition(".")[2][:1].isupper()
        and (not line.startswith(("Caused", "Driver", "org.")))
    )
