"""Reads a metrics endpoint in Prometheus' text format: a broker's admin port, or any exporter."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from kctl.cli.errors import CliError, ExitStatus
from kctl.model.metrics import Series

_MAX_BYTES: Final = 100_000_000
_SERIES: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+\S+)?")
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(r"\\(.)")


def metrics_url(address: str) -> str:
    """The URL of an address given as host:port or as a URL, with or without a path."""
    url = address if "://" in address else f"http://{address}"
    parts = urlsplit(url)
    try:
        is_valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise CliError(
            f"{address!r} is not the address of an admin port",
            "e.g. 127.0.0.1:9644; admin.listeners in server.properties opens it",
            ExitStatus.USAGE,
        )
    return url if parts.path.strip("/") else f"{url.rstrip('/')}/metrics"


def read_metrics(url: str, timeout_s: float, token: str | None = None) -> list[Series]:
    """All series; CliError if the endpoint does not answer, or not with metrics."""
    headers = {"Accept": "text/plain"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urlopen(Request(url, headers=headers), timeout=timeout_s) as response:  # noqa: S310  # http or https
            text = response.read(_MAX_BYTES).decode(errors="replace")
    except HTTPError as error:
        hint = "pass the token with --token-file" if error.code == 401 else "check the path"
        raise CliError(f"{url}: {error.code} {error.reason}", hint) from error
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CliError(
            f"cannot read {url}: {reason}",
            "check the address; admin.listeners in server.properties opens the port",
        ) from error
    return list(parse_metrics(text))


def parse_metrics(text: str) -> Iterator[Series]:
    """The series of a text; lines of another form are skipped."""
    for line in text.split("\n"):
        found = None if line.startswith("#") else _SERIES.fullmatch(line.strip())
        if found:
            name, labels, value = found.groups()
            try:
                number = float(value)
            except ValueError:
                continue
            pairs = {key: _unescape(label) for key, label in _LABEL.findall(labels or "")}
            yield Series(name, pairs, number)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text)
