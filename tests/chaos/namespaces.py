"""Runs a command in network and mount namespaces of its own.

`python -m tests.chaos.namespaces COMMAND …`: interfaces, addresses and mounts that the command
makes are seen by no other process and vanish with it, however it ends. A user namespace makes that
possible without root. Where the system forbids it, the command runs without namespaces, and faults
that need them (of the network, full disks) are left out.
"""

import os
import shutil
import subprocess
import sys

_UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--fork", "--kill-child"]
_VARIABLE = "KCTL_NAMESPACES"
_NEEDED = ("unshare", "nsenter", "ip", "mount")


def have_namespaces() -> bool:
    """Whether this process has namespaces of its own."""
    return os.environ.get(_VARIABLE) == "1"


def main() -> None:
    """Become the command, in new namespaces if possible."""
    command = sys.argv[1:]
    if _can_unshare():
        os.environ[_VARIABLE] = "1"
        command = [*_UNSHARE, *command]
    else:
        print("no namespaces: the network does not fail in this run", file=sys.stderr)
    os.execvp(command[0], command)  # noqa: S606


def _can_unshare() -> bool:
    if not all(map(shutil.which, _NEEDED)) or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return False
    return subprocess.run([*_UNSHARE, "true"], capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
