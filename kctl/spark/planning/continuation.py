"""Settings of an export that is added to others, so that all of them are one table. No I/O."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kctl.cli.errors import CliError
from kctl.spark.planning.settings import ContentType, TaskSettings

_OPTIONS: Final = {
    "export_format": "--format",
    "columns": "--columns",
    "partition_by": "--partition-by",
    "key_type": "--key",
    "value_type": "--value",
    "is_flat": "--flatten",
    "where": "--where",
    "sample": "--sample",
}
"""Settings that must be the same in all exports of a directory, and their options."""
_DEFAULTS: Final = TaskSettings("").to_json()
"""Manifests of older versions lack the settings that were added since."""
_HINT: Final = "use the same options, or export to another directory"


def continue_settings(settings: TaskSettings, previous: Mapping[str, Any]) -> TaskSettings:
    """The settings with the JSON schema of the previous export, whose settings are given.

    CliError if the exports would not be readable as one table.
    """
    wanted = settings.to_json()
    for name, option in _OPTIONS.items():
        if _shown(wanted[name]) != _shown(previous.get(name, _DEFAULTS[name])):
            raise CliError(
                f"{option} {_shown(wanted[name])}: the exports in the directory have "
                f"{_shown(previous.get(name, _DEFAULTS[name]))}",
                _HINT,
            )
    if settings.value_type is not ContentType.JSON:
        return settings
    schema = previous["value_schema"]
    if settings.value_schema and settings.value_schema != schema:
        raise CliError("--schema differs from the schema of the exports in the directory", _HINT)
    # A manifest of an older version does not say: keeping records aside loses nothing.
    is_inferred = bool(previous.get("is_schema_inferred", True)) and not settings.value_schema
    return replace(settings, value_schema=schema, is_schema_inferred=is_inferred)


def _shown(value: Any) -> str:
    """A setting as its option is written; JSON has lists where settings have tuples."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return str(value)
