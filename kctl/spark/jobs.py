"""Jobs on Spark that can be watched, interrupted, and fail in one line."""

import errno
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from kctl.errors import CliError, ExitStatus
from kctl.streaming.interrupts import ctrl_c_noted

_POLL_S = 0.2
_CANCEL_S = 20


class JobFailed(CliError):
    """A job came to nothing; what is left of it is said by whoever has looked after that."""


class DiskFull(JobFailed):
    """No space: the one failure after which finished tasks are in the way."""


def run_job(context: Any, work: Callable[[], None], look: Callable[[int], None]) -> None:
    """Do `work`, which starts Spark jobs, and call `look` meanwhile with the tasks that run.

    JobFailed says in one line what failed. Ctrl-C cancels the jobs and waits until their tasks
    have ended, so that none of them writes on.
    """
    group = f"kctl-{uuid4().hex[:8]}"
    failure: list[Exception] = []

    def run() -> None:
        context.setJobGroup(group, "kctl spark-export", interruptOnCancel=True)
        try:
            work()
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits
            failure.append(error)

    # Py4J waits in C for Java; in a thread of its own the wait leaves room to look and to cancel.
    job = threading.Thread(target=run, daemon=True)
    job.start()
    # Py4J answers an interrupt in the middle of one of its calls with errors of its own.
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
    """End the jobs of a group; a job is over before the last of its tasks has noticed."""
    context.cancelJobGroup(group)
    deadline = time.monotonic() + _CANCEL_S
    job.join(_CANCEL_S)
    while running_tasks(context, group) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def running_tasks(context: Any, group: str) -> int:
    """How many tasks of a group of jobs are being worked on, as Spark's status says."""
    status = context.statusTracker()
    jobs = [status.getJobInfo(job) for job in status.getJobIdsForGroup(group)]
    stages = [status.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numActiveTasks for stage in stages if stage)


def explain(error: Exception) -> JobFailed:
    """The last line of what a worker raised, which is the one that says what was wrong."""
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
