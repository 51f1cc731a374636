"""Settings of an export that is added to others, so that all of them are one table. No I/O."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kctl.cli.errors import CliError
from kctl.spark.decoding.evolution import Evolution, covers, evolve
from kctl.spark.decoding.schema import decode_struct, encode_struct
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


def continue_settings(
    settings: TaskSettings, previous: Mapping[str, Any], evolution: Evolution = Evolution.NONE
) -> TaskSettings:
    """The settings with the JSON schema of the previous export, whose settings are given.

    A schema given by the user may change that of the previous export as far as `evolution` allows.
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
    if not settings.value_type.has_schema:
        return settings
    schema = previous["value_schema"]
    if settings.value_type is ContentType.REGISTRY:
        return _continue_registry(settings, previous, evolution)
    if settings.value_schema and settings.value_schema != schema:
        schema = _evolved(settings.value_schema, schema, evolution)
    # A manifest of an older version does not say: setting records aside loses nothing.
    is_inferred = bool(previous.get("is_schema_inferred", True)) and not settings.value_schema
    return replace(settings, value_schema=schema, is_schema_inferred=is_inferred)


def _continue_registry(
    settings: TaskSettings, previous: Mapping[str, Any], evolution: Evolution
) -> TaskSettings:
    """The schema of the previous export; with evolution, what the newest one adds to it."""
    if evolution is Evolution.NONE:
        return replace(
            settings, value_schema=previous["value_schema"], schema_id=previous["schema_id"]
        )
    found = evolve(
        decode_struct(previous["value_schema"]), decode_struct(settings.value_schema), evolution
    )
    return replace(settings, value_schema=encode_struct(found))


def _evolved(given: str, previous: str, evolution: Evolution) -> str:
    """The previous schema with what a given one adds; CliError if that is not allowed."""
    if previous:
        wanted = decode_struct(given)
        found = evolve(decode_struct(previous), wanted, evolution)
        if evolution is not Evolution.NONE and covers(found, wanted):
            return encode_struct(found)
    raise CliError(
        "--schema differs from the schema of the exports in the directory",
        f"{_HINT}; --schema-evolution add allows new fields, widen also wider numbers",
    )


def _shown(value: Any) -> str:
    """A setting as its option is written; JSON has lists where settings have tuples."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return str(value)
