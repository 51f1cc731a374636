"""Legal topic names (Kafka's Topic class), and the names of the internal topics."""

import re
from collections.abc import Iterable
from typing import Final

from broker.errors import ErrorCode
from broker.model import LEADER_DURING_DELETE, NO_LEADER

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC})

MAX_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def name_problem(name: str) -> str | None:
    """Why a topic name is illegal, in Kafka's words; None if it is legal."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{MAX_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None


def check_partition(
    topic: str, index: int, broker_ids: Iterable[int] = (), leader: int = NO_LEADER
) -> ErrorCode:
    """The error for a partition that another broker names in a request; NONE if it is legal.

    Names and numbers of brokers are checked as those of clients are: with a topic `a/b` the log's
    directory would be created outside of its log directory. `broker_ids` are the ids of its
    replicas. A leader that is no broker has one of two values.
    """
    if name_problem(topic) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if index < 0 or leader < LEADER_DURING_DELETE or any(one < 0 for one in broker_ids):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def collisions(name: str, others: Iterable[str]) -> list[str]:
    """Topics that differ from `name` only by `.` for `_`: their metrics would have equal names."""
    if "." not in name and "_" not in name:
        return []
    same = name.replace(".", "_")
    return [other for other in others if other != name and other.replace(".", "_") == same]
