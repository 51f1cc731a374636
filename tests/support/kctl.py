"""kctl as tests call it: in this process, with what it printed caught."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from typer.testing import CliRunner

from kctl.app import app

# The settings of the user who runs the tests must not reach kctl.
CLEAN_ENVIRONMENT: dict[str, str | None] = {
    "KCTL_BOOTSTRAP_SERVERS": None,
    "KCTL_CONTEXT": None,
    "KCTL_COMMAND_CONFIG": None,
    "KCTL_CONFIG": os.devnull,
    "KCTL_SECURITY_PROTOCOL": None,
    "KCTL_SCHEMA_REGISTRY_URL": None,
    "KCTL_ZOOKEEPER": None,
    "KCTL_OUTPUT": None,
    "KCTL_TIMEOUT": None,
    "NO_COLOR": None,
}


@dataclass(frozen=True)
class KctlResult:
    """The output and exit code of one run of kctl."""

    output: str
    stderr: str
    exit_code: int
    everything: str = ""
    """stdout and stderr in the order of printing, as on a terminal."""

    @property
    def json(self) -> Any:
        """The output of `-o json`."""
        return json.loads(self.output)


class Kctl(Protocol):
    """The fixture `kctl`: `kctl("brokers", "list", "-o", "json").json`."""

    def __call__(
        self, *args: str, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> KctlResult:
        """Run one command line."""
        ...


def run_kctl(
    *args: str, stdin: str | None = None, env: Mapping[str, str] | None = None
) -> KctlResult:
    """Run one command line; see `Kctl`."""
    result = CliRunner(env=CLEAN_ENVIRONMENT).invoke(app, args, input=stdin, env=env)
    return KctlResult(result.stdout, result.stderr, result.exit_code, result.output)
