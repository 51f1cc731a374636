"""Contexts: clusters by name, in one YAML file that people may also edit by hand.

    current: dev
    contexts:
      dev:
        bootstrap_servers: localhost:9092
      prod:
        bootstrap_servers: kafka1:9092,kafka2:9092
        command_config: /etc/kafka/client.properties
        zookeeper: zk1:2181/kafka
        protected: true

The file is `$KCTL_CONFIG`, else `kctl/config.yaml` in the user's configuration directory. It need
not exist: `-b HOST:PORT` is always enough. Secrets belong into the client.properties that a
context names, not here.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from kctl.errors import CliError, ExitStatus


@dataclass(frozen=True)
class Context:
    """One cluster, and what may be done to it."""

    bootstrap_servers: str | None = None
    command_config: str | None = None
    """A Java client.properties file."""
    zookeeper: str | None = None
    """`host:port/chroot`, for what is asked of ZooKeeper itself."""
    read_only: bool = False
    """Nothing may be changed."""
    protected: bool = False
    """What would ask y/n asks for the context's name, and `--yes` does not answer that."""


@dataclass(frozen=True)
class Contexts:
    """What the file holds."""

    current: str | None = None
    named: Mapping[str, Context] = field(default_factory=dict)

    def get(self, name: str) -> Context:
        """The context called `name`; CliError says which there are."""
        if name not in self.named:
            known = ", ".join(self.named) or "none"
            raise CliError(
                f"there is no context {name!r} (known: {known})",
                f"kctl context set {name} -b HOST:PORT makes one",
                ExitStatus.USAGE,
            )
        return self.named[name]


def config_path() -> Path:
    """Where the contexts are kept."""
    if named := os.environ.get("KCTL_CONFIG"):
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "kctl" / "config.yaml"


def read_contexts(path: Path) -> Contexts:
    """The contexts in the file; none if there is no file."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    import yaml  # only here: most runs name their cluster with -b or the environment

    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise _unusable(path, " ".join(str(error).split())) from error
    return _parse(document, path)


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file as a whole, so that a reader sees the old one or the new one."""
    import yaml

    defaults = asdict(Context())
    named = {
        name: {key: value for key, value in asdict(context).items() if value != defaults[key]}
        for name, context in contexts.named.items()
    }
    document = {"current": contexts.current, "contexts": named}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    draft.replace(path)


def _parse(document: Any, path: Path) -> Contexts:
    if not isinstance(document, dict):
        raise _unusable(path, "it is not a mapping with `current` and `contexts`")
    if surplus := document.keys() - {"current", "contexts"}:
        raise _unusable(path, f"unknown keys: {', '.join(map(str, surplus))}")
    current, named = document.get("current"), document.get("contexts") or {}
    if not isinstance(named, dict) or not isinstance(current, str | None):
        raise _unusable(path, "`current` is a name, and `contexts` a mapping of names")
    return Contexts(
        current, {str(name): _context(str(name), entry, path) for name, entry in named.items()}
    )


def _context(name: str, entry: Any, path: Path) -> Context:
    entry = {} if entry is None else entry
    known = {declared.name: declared.type for declared in fields(Context)}
    if not isinstance(entry, dict) or not entry.keys() <= known.keys():
        raise _unusable(path, f"context {name!r} may have only {', '.join(known)}")
    for key, value in entry.items():
        wanted = bool if known[key] is bool else str
        if not isinstance(value, wanted):
            raise _unusable(path, f"{key} of context {name!r} is not a {wanted.__name__}")
    return Context(**entry)


def _unusable(path: Path, reason: str) -> CliError:
    return CliError(
        f"cannot use {path}: {reason}", "correct the file, or name another: KCTL_CONFIG"
    )
