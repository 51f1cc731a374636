"""Contexts: named clusters, in one YAML file that may be edited by hand.

    current: dev
    contexts:
      dev:
        bootstrap_servers: localhost:9092
      prod:
        bootstrap_servers: kafka1:9092,kafka2:9092
        command_config: /etc/kafka/client.properties
        zookeeper: zk1:2181/kafka
        protected: true
        cluster_id: Xz4f0Rl6QZqPZBVJXo7Vmw
        export_engine: local

The file is `$KCTL_CONFIG`, else `kctl/config.yaml` in the user's configuration directory. It is
optional: `-b HOST:PORT` is enough. Secrets belong in the client.properties of a context, not here.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.text_files import read_small_text

EXPORT_ENGINES: Final = ("spark", "local")


@dataclass(frozen=True)
class Context:
    """One cluster, and the changes allowed on it."""

    bootstrap_servers: str | None = None
    command_config: str | None = None
    """A Java client.properties file."""
    zookeeper: str | None = None
    """`host:port/chroot`, for commands that read ZooKeeper."""
    read_only: bool = False
    """Refuse all changes: also commits of offsets, and joining consumer groups."""
    protected: bool = False
    """Confirmations require typing the context's name; `--yes` is not enough."""
    cluster_id: str | None = None
    """Recorded by `kctl context set`. Commands refuse to run if the brokers have another one, and
    restrictions apply to this cluster however it is addressed; see `guards`."""
    export_engine: str | None = None
    """The default of `kctl spark-export --engine`: spark or local."""


@dataclass(frozen=True)
class Contexts:
    """The contents of the file."""

    current: str | None = None
    named: Mapping[str, Context] = field(default_factory=dict)

    def get(self, name: str) -> Context:
        """The context called `name`; CliError lists the known ones."""
        if name not in self.named:
            known = ", ".join(self.named) or "none"
            raise CliError(
                f"no such context: {name!r} (known: {known})",
                f"kctl context set {name} -b HOST:PORT creates it",
                ExitStatus.USAGE,
            )
        return self.named[name]


def refuse_empty_variable(name: str) -> None:
    """A usage error if the environment variable is set to an empty string."""
    if not os.environ.get(name, "unset").strip(" ,"):
        raise usage_error(f"{name} is empty", f"set it to a value, or unset {name}")


def config_path() -> Path:
    """The path of the file with the contexts."""
    refuse_empty_variable("KCTL_CONFIG")
    if named := os.environ.get("KCTL_CONFIG"):
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "kctl" / "config.yaml"


def read_contexts(path: Path) -> Contexts:
    """The contexts in the file; none if the file does not exist."""
    try:
        text = read_small_text(path)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise _unusable(path, "it is not a text file") from error
    import yaml  # imported here: most runs do not read contexts

    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise _unusable(path, " ".join(str(error).split())) from error
    return _parse(document, path)


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file atomically."""
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
        raise _unusable(path, "expected a mapping with `current` and `contexts`")
    if surplus := document.keys() - {"current", "contexts"}:
        raise _unusable(path, f"unknown keys: {', '.join(map(str, surplus))}")
    current, named = document.get("current"), document.get("contexts") or {}
    if not isinstance(named, dict) or not isinstance(current, str | None):
        raise _unusable(path, "`current` must be a name, and `contexts` a mapping of names")
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
            raise _unusable(path, f"{key} of context {name!r} must be a {wanted.__name__}")
        if value == "":
            raise _unusable(path, f"{key} of context {name!r} is empty")
    context = Context(**entry)
    if context.export_engine not in (None, *EXPORT_ENGINES):
        choices = " or ".join(EXPORT_ENGINES)
        raise _unusable(path, f"export_engine of context {name!r} must be {choices}")
    return context


def _unusable(path: Path, reason: str) -> CliError:
    return CliError(
        f"cannot use {path}: {reason}", "correct the file, or set KCTL_CONFIG to another one"
    )
