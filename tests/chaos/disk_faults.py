"""Faults of disks: each function causes one, and returns when the broker runs again.

A broker has one log directory, so it ends by itself when that fails, as Kafka does. A full disk
needs the mounts of `namespaces`; writes that fail, in the middle too, need only a resource limit.
"""

import os
import resource
import subprocess
from pathlib import Path

from tests.chaos.faults import Fault
from tests.chaos.stage import BROKERS, SESSION_S, Stage

_SIZE = "4g"


def mount_disk(directory: Path) -> None:
    """Give a broker a disk of its own, in memory."""
    directory.mkdir(exist_ok=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(directory)], check=True
    )


def _resize(directory: Path, size: str) -> bool:
    """Whether the disk has this size now; it cannot be smaller than what is on it."""
    command = ["mount", "-o", f"remount,size={size}", str(directory)]
    return subprocess.run(command, capture_output=True).returncode == 0


def _fill(directory: Path) -> None:
    while True:
        used = os.statvfs(directory)
        size = (used.f_blocks - used.f_bfree) * used.f_frsize
        if _resize(directory, str(size)):
            return  # otherwise the broker has written meanwhile


def fill_disk(stage: Stage) -> None:
    """The disk of a broker is full."""
    broker_id = stage.random.choice(BROKERS)
    directory = stage.cluster.log_dir(broker_id)
    _fill(directory)
    stage.linger(SESSION_S)
    assert _resize(directory, _SIZE)
    stage.replace(broker_id)


def fail_writes(stage: Stage) -> None:
    """Writes of a broker fail, some of them after a part of their bytes."""
    broker_id = stage.random.choice(BROKERS)
    pid = stage.cluster.servers[broker_id].process.pid
    limit = stage.random.randrange(400_000)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    stage.linger(2 * SESSION_S)
    stage.replace(broker_id)


WITHOUT_MOUNTS: tuple[Fault, ...] = (fail_writes,)
ALL: tuple[Fault, ...] = (fail_writes, fill_disk)
