"""The audit log of an authorizer: one line per check, in Kafka's words.

Levels are Kafka's: an access that was granted is DEBUG, one that was denied INFO. Checks that only
filter lists or compute authorized operations are TRACE.

The same events go to the logger `kafka.authorizer.logger.json` as JSON, one object per line, if
that logger has a handler: see `write_json_lines`.
"""

import json
import logging
import time
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Final, NamedTuple

from broker.security.acls import AclOperation, ResourceType
from broker.security.authorizer import Client, Decision

logger = logging.getLogger("kafka.authorizer.logger")
json_logger = logging.getLogger("kafka.authorizer.logger.json")
json_logger.propagate = False

TRACE: Final = 5
_DEBUG: Final = logging.DEBUG


class Action(NamedTuple):
    """What a client asks for, and how its check is logged."""

    operation: AclOperation
    resource_type: ResourceType
    name: str
    reference_count: int = 1
    """How often the request names the resource."""
    log_if_allowed: bool = True
    """False if the check grants nothing: authorized operations in a response."""
    log_if_denied: bool = True
    """False if the request did not name the resource: a listing is filtered."""
    pattern_type: str = "LITERAL"


def log_decision(
    client: Client, action: Action, decision: Decision, api: str, client_id: str | None
) -> None:
    """Write the audit line, and the JSON line if there is a handler for it."""
    level = _level(action, decision)
    if logger.isEnabledFor(level):
        if logger.isEnabledFor(logging.DEBUG):
            _log_reason(client, action, decision)
        logger.log(
            level,
            "Principal = %s is %s Operation = %s from host = %s on resource = %s:%s:%s "
            "for request = %s with resourceRefCount = %s",
            client.principal,
            "Allowed" if decision.is_allowed else "Denied",
            action.operation.pascal_case,
            client.host,
            action.resource_type.pascal_case,
            action.pattern_type,
            action.name,
            api,
            action.reference_count,
        )
    if json_logger.handlers and json_logger.isEnabledFor(level):
        json_logger.log(level, "%s", _json(client, action, decision, api, client_id))


def is_logged(decision: Decision) -> bool:
    """Whether a decision may be logged; a quick check, so that allowed requests skip the rest."""
    if decision.is_allowed:
        return logs_allowed()
    return logger.isEnabledFor(logging.INFO) or bool(
        json_logger.handlers and json_logger.isEnabledFor(logging.INFO)
    )


def logs_allowed() -> bool:
    """Whether a line is written for accesses that are granted; checked for every request."""
    return logger.isEnabledFor(_DEBUG) or bool(
        json_logger.handlers and json_logger.isEnabledFor(_DEBUG)
    )


def _level(action: Action, decision: Decision) -> int:
    if decision.is_allowed:
        return logging.DEBUG if action.log_if_allowed else TRACE
    return logging.INFO if action.log_if_denied else TRACE


def _log_reason(client: Client, action: Action, decision: Decision) -> None:
    """Kafka's lines before the audit line, which say why."""
    resource = (
        f"ResourcePattern(resourceType={action.resource_type.name}, name={action.name}, "
        f"patternType={action.pattern_type})"
    )
    if decision.reason == "super user":
        logger.debug(
            "principal = %s is a super user, allowing operation without checking acls.",
            client.principal,
        )
    elif decision.reason == "no acl":
        logger.debug(
            "No acl found for resource %s, authorized = %s",
            resource,
            str(decision.is_allowed).lower(),
        )
    elif decision.acl is not None:
        acl = decision.acl
        logger.debug(
            "operation = %s on resource = %s from host = %s is %s based on acl = %s",
            action.operation.name,
            resource,
            client.host,
            acl.permission_type.name,
            acl,
        )


def _json(
    client: Client, action: Action, decision: Decision, api: str, client_id: str | None
) -> str:
    event = {
        "time": f"{_utc_time()}",
        "principal": str(client.principal),
        "host": client.host,
        "client_id": client_id,
        "api": api,
        "operation": action.operation.name,
        "resource_type": action.resource_type.name,
        "resource": action.name,
        "reference_count": action.reference_count,
        "allowed": decision.is_allowed,
        "reason": decision.reason,
        "acl": None if decision.acl is None else str(decision.acl),
    }
    return json.dumps(event, ensure_ascii=False)


def _utc_time() -> str:
    now = time.time()
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    return f"{whole}.{int(now * 1000) % 1000:03d}Z"


def write_json_lines(path: Path) -> logging.Handler:
    """Append JSON lines to a file, which may be rotated: denied accesses, from level INFO on.

    Set the logger's level to DEBUG for allowed accesses too. OSError if it cannot be opened.
    """
    handler = WatchedFileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    json_logger.addHandler(handler)
    return handler
