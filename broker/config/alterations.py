"""Incremental changes of settings: set, delete, append to and subtract from lists."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from broker.config.definitions import Setting
from broker.config.values import ConfigType
from broker.errors import ApiError, ErrorCode


class Operation(IntEnum):
    """The operation on a setting, numbered as in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One change. DELETE has no value."""

    key: str
    operation: Operation
    value: str


def altered(
    current: Mapping[str, str], alterations: list[Alteration], settings: Mapping[str, Setting]
) -> dict[str, str]:
    """The settings after the changes; ApiError for APPEND or SUBTRACT on other types than lists."""
    result = dict(current)
    for key, operation, value in alterations:
        if operation is Operation.SET:
            result[key] = value
        elif operation is Operation.DELETE:
            result.pop(key, None)
        else:
            result[key] = _altered_list(result, Alteration(key, operation, value), settings)
    return result


def _altered_list(
    current: Mapping[str, str], alteration: Alteration, settings: Mapping[str, Setting]
) -> str:
    key, operation, value = alteration
    if key not in settings:
        # Kafka fails with an unexpected exception here; this is the code clients get from it.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"key not found: {key}")
    if settings[key].type is not ConfigType.LIST:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Config value {operation.name.lower()} is not allowed for config key: {key}",
        )
    old = (current.get(key) or settings[key].default_text or "").split(",")
    if operation is Operation.APPEND:
        kept = [word for word in old if word]
        return ",".join(kept + [word for word in value.split(",") if word not in kept])
    for word in value.split(","):
        if word in old:
            old.remove(word)
    return ",".join(old)
