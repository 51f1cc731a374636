"""Configs, changes of configs, and replica assignments."""

import re
from collections.abc import Iterable, Mapping

from kctl.cli.arguments.amounts import parse_bytes
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.times import parse_duration_ms
from kctl.model.configs import Change, Operation

_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
_COMMA = re.compile("," + _OUTSIDE_BRACKETS)


def parse_pairs(texts: Iterable[str], option: str = "--config") -> dict[str, str]:
    """Parse `KEY=VALUE` texts; a value may be empty and may contain equals signs.

    Durations and sizes may have units.
    """
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise CliError(
                f"{option} {text}: expected KEY=VALUE",
                f"e.g. {option} retention.ms=86400000",
                ExitStatus.USAGE,
            )
        pairs[key.strip()] = _in_base_units(key.strip(), value.strip())
    return pairs


def _in_base_units(key: str, value: str) -> str:
    """`retention.ms=7d` in milliseconds, `segment.bytes=1GiB` in bytes; others as they are."""
    if value.lstrip("-").isdecimal():
        return value
    try:
        if key.endswith(".ms"):
            return str(parse_duration_ms(value))
        if key.endswith(".bytes"):
            return str(parse_bytes(value, key))
    except (ValueError, CliError):
        return value  # the broker refuses it, and says what it expects
    return value


def parse_kafka_pairs(text: str, option: str = "--add-config") -> dict[str, str]:
    """Parse `a=1,b=[x,y]` like kafka-configs: commas inside square brackets belong to the value."""
    pairs = parse_pairs(_COMMA.split(text), option)
    return {key: re.sub(r"[\[\]]", "", value).strip() for key, value in pairs.items()}


def parse_assignment(text: str) -> list[list[int]]:
    """Parse `1:2,2:3`: replicas of partition 0, then of partition 1; CliError if it is invalid."""
    try:
        assignment = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise _bad_assignment(text, "expected broker ids") from None
    for index, replicas in enumerate(assignment):
        if len(set(replicas)) < len(replicas):
            raise _bad_assignment(text, f"partition {index} lists a broker twice")
        if len(replicas) != len(assignment[0]):
            raise _bad_assignment(text, f"partition {index} has a different number of replicas")
    return assignment


def _bad_assignment(text: str, reason: str) -> CliError:
    return CliError(
        f"--replica-assignment {text}: {reason}",
        "1:2,2:3 assigns partition 0 to brokers 1 and 2, and partition 1 to 2 and 3",
        ExitStatus.USAGE,
    )


def parse_changes(
    *,
    set_pairs: Mapping[str, str] | None = None,
    deleted: Iterable[str] = (),
    appended: Iterable[str] = (),
    subtracted: Iterable[str] = (),
) -> list[Change]:
    """The changes in the options; CliError if two of them concern the same config."""
    changes = [Change(name, Operation.SET, value) for name, value in (set_pairs or {}).items()]
    changes += [Change(name.strip(), Operation.DELETE) for name in deleted]
    for option, operation, texts in (
        ("--append", Operation.APPEND, appended),
        ("--subtract", Operation.SUBTRACT, subtracted),
    ):
        pairs = parse_pairs(texts, option)
        changes += [Change(name, operation, value) for name, value in pairs.items()]
    names = [change.name for change in changes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise CliError(
            f"{', '.join(twice)}: more than one change of the same config",
            "specify each config once",
            ExitStatus.USAGE,
        )
    return changes
