"""Java properties files, as Kafka's tools read them with `--command-config`."""

from pathlib import Path

from broker.java_properties import parse_properties
from kctl.cli.errors import CliError
from kctl.cli.text_files import read_small_text


def read_client_properties(path: Path, option: str = "--command-config") -> dict[str, str]:
    """The properties in a file; CliError, which names the option, if it cannot be read."""
    try:
        return parse_properties(read_small_text(path))
    except (OSError, ValueError) as error:  # a UnicodeDecodeError is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise CliError(
            f"cannot read {path}: {reason}", f"{option} expects a file of Java properties"
        ) from error
