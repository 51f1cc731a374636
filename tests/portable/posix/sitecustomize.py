"""Makes a Python on Linux look like one on macOS: what only Linux has is removed at start.

Python imports this module before everything else if its directory is in PYTHONPATH. Names are
removed, files in /proc and /sys do not exist, and libc has no syncfs. sendfile, preadv and pwritev
exist on current versions of macOS; they are removed anyway, to run their fallbacks.
"""

import ctypes
import errno
import sys
from typing import Any

LINUX_ONLY: dict[str, tuple[str, ...]] = {
    # select is first: importing the others imports selectors, which looks for epoll.
    "select": ("epoll", "EPOLL*"),
    "_socket": (
        *("MSG_MORE", "MSG_ERRQUEUE", "MSG_CONFIRM", "SOCK_NONBLOCK", "SOCK_CLOEXEC"),
        *("SO_BINDTODEVICE", "SO_DOMAIN", "SO_INCOMING_CPU", "SO_MARK", "SO_PASSCRED"),
        *("SO_PEERCRED", "SO_PRIORITY", "SO_PROTOCOL", "TCP_CONGESTION", "TCP_CORK"),
        *("TCP_DEFER_ACCEPT", "TCP_INFO", "TCP_KEEPIDLE", "TCP_LINGER2", "TCP_QUICKACK"),
        *("TCP_SYNCNT", "TCP_USER_TIMEOUT", "TCP_WINDOW_CLAMP", "AF_NETLINK", "AF_PACKET"),
    ),
    "posix": (
        *("copy_file_range", "eventfd", "EFD_*", "fdatasync", "getrandom", "GRND_*"),
        *("memfd_create", "MFD_*", "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate"),
        *("POSIX_FADV_*", "preadv", "pwritev", "RWF_*", "sched_*affinity", "sched_*param"),
        *("sched_*scheduler", "sched_rr_get_interval", "sendfile", "setns", "setresgid"),
        *("setresuid", "splice", "SPLICE_*", "unshare", "CLONE_*", "getxattr", "listxattr"),
        *("removexattr", "setxattr", "XATTR_*", "O_DIRECT", "O_LARGEFILE", "O_NOATIME"),
        *("O_PATH", "O_RSYNC", "O_TMPFILE", "RTLD_DEEPBIND"),
    ),
    "fcntl": ("F_*SIG", "F_*LEASE", "F_NOTIFY", "DN_*", "F_*PIPE_SZ", "F_OFD_*", "F_*_SEALS"),
    "resource": ("prlimit", "RUSAGE_THREAD", "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_RT*"),
    "_signal": ("SIGRT*", "SIGPWR", "SIGSTKFLT", "SIGPOLL", "sigtimedwait", "sigwaitinfo"),
    "time": ("CLOCK_BOOTTIME", "CLOCK_TAI", "pthread_getcpuclockid"),
    "mmap": ("MAP_DENYWRITE", "MAP_EXECUTABLE", "MAP_POPULATE", "MAP_STACK", "MADV_HUGEPAGE"),
}
"""By module of C: patterns of names."""


def _matches(name: str, pattern: str) -> bool:
    first, _, last = pattern.partition("*")
    return name.startswith(first) and name.endswith(last) if "*" in pattern else name == pattern


def _remove(module: str, patterns: tuple[str, ...]) -> None:
    loaded = [__import__(module)]
    loaded += [sys.modules["os"]] if module == "posix" else []
    for found in loaded:
        for name in list(vars(found)):
            if any(_matches(name, pattern) for pattern in patterns):
                delattr(found, name)


def _deny_linux_files(event: str, args: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and isinstance(args[0], str | bytes):
        path = args[0] if isinstance(args[0], str) else args[0].decode(errors="replace")
        if path.startswith(("/proc/", "/sys/")):
            raise FileNotFoundError(errno.ENOENT, "no such file on this system", path)


def _without_syncfs(library: ctypes.CDLL, name: str) -> Any:
    if name == "syncfs":
        raise AttributeError(name)
    return _lookup(library, name)


for _module, _patterns in LINUX_ONLY.items():
    _remove(_module, _patterns)
sys.addaudithook(_deny_linux_files)
_lookup = ctypes.CDLL.__getattr__
ctypes.CDLL.__getattr__ = _without_syncfs  # type: ignore[method-assign]
