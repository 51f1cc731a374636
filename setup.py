"""Builds the compiled modules if Cython and a C compiler are available.

Without them the installation works as well; the same source files are interpreted, only slower.

With KCTL_COMPILE=all (`make compiled`) the modules that every Produce and Fetch passes through are
compiled too. They have no C types: what is saved is the interpreter's own time, a fifth of the CPU
time of small requests. Not by default, because who edits one of them must compile it again.
"""

import os

from setuptools import Extension, setup

COMPILED = ["broker/records/decoder.py", "broker/records/scan.py"]

REQUEST_PATH = [
    *("broker/api/dispatch.py", "broker/api/fetch_session.py", "broker/api/responses.py"),
    *("broker/api/handlers/fetch.py", "broker/api/handlers/produce.py"),
    *("broker/log/fast_append.py", "broker/log/file_records.py", "broker/log/files.py"),
    *("broker/log/header_check.py", "broker/log/index.py", "broker/log/leader_epochs.py"),
    *("broker/log/local_log.py", "broker/log/log_files.py", "broker/log/offset_index.py"),
    *("broker/log/partition_log.py", "broker/log/producer_entry.py"),
    *("broker/log/producer_state.py", "broker/log/segment.py", "broker/log/segment_indexes.py"),
    *("broker/log/segments.py", "broker/log/validator.py"),
    *("broker/net/connection.py", "broker/net/connection_state.py", "broker/net/epoll_poller.py"),
    *("broker/net/transport.py", "broker/protocol/codec.py", "broker/protocol/framing.py"),
    *("broker/protocol/headers.py", "broker/replica/partition.py", "broker/replica/purgatory.py"),
    "broker/replica/watchers.py",
]
"""Compiled on request. Layers below what most tests replace; no module that a process starts with,
and none that Spark executors import."""

DIRECTIVES = {
    "language_level": 3,
    # C types come from the .pxd beside each file, not from annotations.
    "annotation_typing": False,
    # No index is ever negative. Bounds are checked: the modules rely on IndexError.
    "wraparound": False,
    "boundscheck": True,
}


PLAIN_DIRECTIVES = {"language_level": 3, "annotation_typing": False}
"""Of modules without C types: exactly what Python does."""


def extensions() -> list[Extension]:
    """The extensions to build; an empty list if Cython is missing."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    # -fwrapv: timestamps wrap as in Java; -g0: debug symbols would be most of the file.
    typed = [_extension(path, "-O3", "-fwrapv", "-g0") for path in COMPILED]
    modules = cythonize(typed, compiler_directives=DIRECTIVES, build_dir="build")
    if os.environ.get("KCTL_COMPILE") == "all":
        plain = [_extension(path, "-O2", "-g0") for path in REQUEST_PATH]
        modules += cythonize(plain, compiler_directives=PLAIN_DIRECTIVES, build_dir="build")
    for module in modules:
        module.optional = True  # do not fail without a C compiler; cythonize drops this flag
    return list(modules)


def _extension(path: str, *options: str) -> Extension:
    name = path.removesuffix(".py").replace("/", ".")
    return Extension(name, [path], extra_compile_args=list(options))


setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count()}})
