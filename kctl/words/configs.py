"""Settings and assignments as people write them on a command line."""

import re
from collections.abc import Iterable

from kctl.errors import CliError, ExitStatus

_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
_COMMA = re.compile("," + _OUTSIDE_BRACKETS)


def parse_pairs(texts: Iterable[str], option: str = "--config") -> dict[str, str]:
    """`key=value` each; a value may hold further equals signs, and may be empty."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise CliError(
                f"{option} {text}: expected KEY=VALUE",
                f"e.g. {option} retention.ms=86400000",
                ExitStatus.USAGE,
            )
        pairs[key.strip()] = value.strip()
    return pairs


def parse_kafka_pairs(text: str, option: str = "--add-config") -> dict[str, str]:
    """`a=1,b=[x,y]` as kafka-configs has it: commas inside of square brackets are the value's."""
    pairs = parse_pairs(_COMMA.split(text), option)
    return {key: re.sub(r"[\[\]]", "", value).strip() for key, value in pairs.items()}


def parse_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3`: replicas of partition 0, then of partition 1; CliError names what is wrong."""
    try:
        assignment = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise _bad_assignment(text, "expected ids of brokers") from None
    for index, replicas in enumerate(assignment):
        if len(set(replicas)) < len(replicas):
            raise _bad_assignment(text, f"partition {index} names a broker twice")
        if len(replicas) != len(assignment[0]):
            raise _bad_assignment(text, f"partition {index} has another number of replicas")
    return assignment


def _bad_assignment(text: str, reason: str) -> CliError:
    return CliError(
        f"--replica-assignment {text}: {reason}",
        "1:2,2:3 puts partition 0 on brokers 1 and 2, partition 1 on 2 and 3",
        ExitStatus.USAGE,
    )
