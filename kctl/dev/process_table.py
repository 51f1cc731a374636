"""Which process has which arguments: from /proc, or on systems without it (macOS) from ps(1)."""

import os
import shutil
import subprocess
from pathlib import Path


def runs_with(pid: int, file: Path) -> bool:
    """Whether a process with this id runs, is no zombie, and has the file as an argument."""
    return _runs_with_by_proc(pid, file) if _has_proc() else _runs_with_by_ps(pid, file)


def _has_proc() -> bool:
    try:
        return bool(Path("/proc/self/stat").read_bytes())
    except OSError:
        return False


def _runs_with_by_proc(pid: int, file: Path) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and any(
        _is_file(pid, os.fsdecode(each), file) for each in arguments if each
    )


def _is_file(pid: int, argument: str, file: Path) -> bool:
    """Compare files, not names: the path may be relative to the directory of the process."""
    try:
        return file.samefile(Path(f"/proc/{pid}/cwd") / argument)
    except OSError:
        return False


def _runs_with_by_ps(pid: int, file: Path) -> bool:
    """The same by the absolute path of the file, which ps prints among the arguments."""
    ps = shutil.which("ps") or "/bin/ps"
    command = [ps, "-ww", "-o", "stat=", "-o", "command=", "-p", str(pid)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    state, _, arguments = found.stdout.strip().partition(" ")
    return not state.startswith("Z") and f" {file} " in f" {arguments} "
