"""Reads files in the format of Kafka's server.properties."""

from pathlib import Path

from broker.config.values import ConfigError
from broker.java_properties import parse_properties


def read_properties(path: Path) -> dict[str, str]:
    """The keys and values of a file; ConfigError if it cannot be read or parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text") from error
    try:
        return parse_properties(text)
    except ValueError as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
