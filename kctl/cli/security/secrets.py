"""Secrets from the environment, from files, and from a prompt."""

import getpass
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from kctl.cli.client_properties import read_client_properties
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.text_files import read_small_text

_REFERENCE = re.compile(r"\$\{(env|file|directory):([^}]+)\}")
_FILE_SUFFIX = "_FILE"

SETTINGS = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "schema.registry.url",
    "basic.auth.user.info",
    "bearer.auth.token",
)
"""Settings that KCTL_SECURITY_PROTOCOL, KCTL_SASL_PASSWORD and so on can override."""


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Settings from `KCTL_…` variables; `KCTL_…_FILE` names a file that contains the value."""
    found = {}
    for setting in SETTINGS:
        variable = f"KCTL_{setting.upper().replace('.', '_')}"
        if variable in environ:
            found[setting] = environ[variable]
        elif path := environ.get(variable + _FILE_SUFFIX):
            found[setting] = read_secret(Path(path), variable + _FILE_SUFFIX)
    return found


def resolve(properties: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Resolve references like Kafka's config providers.

    `${env:NAME}` is a variable, `${file:PATH:KEY}` a key of a properties file, and
    `${directory:PATH:NAME}` the contents of a file in a directory.
    """

    def value(reference: re.Match[str]) -> str:
        kind, rest = reference.groups()
        if kind == "env":
            return _variable(rest, environ)
        path, _, key = rest.rpartition(":")
        if kind == "file":
            return _key_of(Path(path), key)
        return read_secret(Path(path) / key, "the directory reference")

    return {key: _REFERENCE.sub(value, text) for key, text in properties.items()}


def ask_secret(what: str) -> str | None:
    """Prompt without echo; None if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return getpass.getpass(f"{what}: ", sys.stderr)


def _variable(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise CliError(f"client.properties refers to ${{env:{name}}}, which is not set")
    return environ[name]


def _key_of(path: Path, key: str) -> str:
    found = read_client_properties(path.expanduser())
    if key not in found:
        raise CliError(f"client.properties refers to {key!r} in {path}, which has no such key")
    return found[key]


def read_secret(path: Path, source: str) -> str:
    """The contents of a file without the final line end; `source` is for the error message."""
    try:
        return read_small_text(path.expanduser()).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CliError(
            f"cannot read {path}, which {source} names: {reason}", status=ExitStatus.USAGE
        ) from error
