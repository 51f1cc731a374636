"""Levels of the broker's loggers: the resource BROKER_LOGGER (KIP-412), with Kafka's messages.

A change is lost when the broker stops. The names are those of this broker's loggers; `root` is the
root logger.
"""

import logging
from typing import Final

from broker.config.alterations import Alteration, Operation
from broker.errors import ApiError, ErrorCode

ROOT: Final = "root"

_TRACE: Final = 5
_LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": _TRACE,
    "WARN": logging.WARNING,
}

logger = logging.getLogger(__name__)


def logger_levels() -> dict[str, str]:
    """The effective level of every logger."""
    named = logging.root.manager.loggerDict
    names = [name for name, known in named.items() if isinstance(known, logging.Logger)]
    levels = {name: _level_name(logging.getLogger(name).getEffectiveLevel()) for name in names}
    return {ROOT: _level_name(logging.root.level)} | levels


def _level_name(level: int) -> str:
    """Kafka's name of a level; the next lower one if it has none."""
    at_most = [(number, name) for name, number in _LEVELS.items() if number <= level]
    return max(at_most)[1] if at_most else "TRACE"


def check_levels(alterations: list[Alteration]) -> None:
    """ApiError for the first invalid change."""
    for alteration in alterations:
        _check(alteration)


def _check(alteration: Alteration) -> None:
    name, operation, level = alteration
    if operation in (Operation.APPEND, Operation.SUBTRACT):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{operation.name} operation is not allowed for the BROKER_LOGGER resource",
        )
    if name not in logger_levels():
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation is Operation.DELETE and name == ROOT:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )
    if operation is Operation.SET and level not in _LEVELS:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(_LEVELS)}",
        )


def set_levels(alterations: list[Alteration]) -> None:
    """Apply changes that `check_levels` accepted."""
    for name, operation, level in alterations:
        wanted = _LEVELS[level] if operation is Operation.SET else logging.NOTSET
        logging.getLogger(None if name == ROOT else name).setLevel(wanted)
        logger.warning("updated the log level logger=%s level=%s", name, level or "inherited")
