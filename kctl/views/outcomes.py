"""Results of changes, one row per item.

All items are attempted. If one fails, the command fails, with the reason on stderr, so that scripts
need to check only the exit status.
"""

from collections.abc import Sequence

from broker.errors import ErrorCode
from kctl.cli.errors import CliError
from kctl.cli.output import Output
from kctl.cli.tables import Column, Row
from kctl.cli.theme import Style
from kctl.model.outcomes import Outcome

HINTS = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "--if-not-exists ignores existing topics",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "kctl topics list shows the topics",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "topic names have at most 249 characters: letters, "
    "digits, '.', '_' and '-'; two names must not differ in '.' and '_' only",
    ErrorCode.INVALID_REPLICATION_FACTOR: "kctl brokers list shows the brokers",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "kctl brokers list shows the broker ids",
    ErrorCode.INVALID_CONFIG: "kctl configs describe --all shows all configs and their values",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions can only be increased",
    ErrorCode.TOPIC_DELETION_DISABLED: "the brokers have delete.topic.enable=false",
    ErrorCode.POLICY_VIOLATION: "it is forbidden by a policy of the cluster or by the topic's "
    "cleanup.policy",
    ErrorCode.REQUEST_TIMED_OUT: "the change may have been made, or may still be made: check again",
    ErrorCode.SECURITY_DISABLED: "the brokers have no authorizer: set authorizer.class.name",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "it needs an ACL on the cluster: kctl acls add cluster",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "kctl acls explain USER OPERATION topic:NAME shows why",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "kctl acls explain USER OPERATION group:NAME shows why",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the brokers have no delegation.token.secret.key",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in with SASL or a client certificate",
    ErrorCode.NON_EMPTY_GROUP: "the group has members: stop its consumers, or use kctl groups "
    "remove-members",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "a member of the group is subscribed to the topic: stop "
    "its consumers first",
    ErrorCode.LEADER_NOT_AVAILABLE: "kctl topics describe --unavailable shows partitions without a "
    "leader",
    ErrorCode.OFFSET_NOT_AVAILABLE: "a new leader has not yet caught up: try again",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "the segments have an old message format",
    ErrorCode.OFFSET_OUT_OF_RANGE: "kctl offsets shows the log end offset",
}


_CHECKS = {
    "topic": "kctl topics describe {name}",
    "group": "kctl groups describe {name}",
    "member": "kctl groups describe --members",
    "entity": "kctl configs describe",
    "user": "kctl users list",
}
"""Commands that show whether a change that timed out was made, by the kind of item."""


def outcome_hint(one: Outcome, kind: str) -> str:
    """What to do about a failed item; after a timeout, how to see whether it was changed."""
    if one.error is ErrorCode.REQUEST_TIMED_OUT and kind in _CHECKS:
        check = _CHECKS[kind].format(name=one.name)
        return f"the change may have been made, or may still be made: {check} shows it"
    return HINTS.get(one.error, "") if one.error else ""


def _status_style(row: Row) -> Style:
    return Style.BAD if row.get("status") == "failed" else Style.GOOD


_STATUS = Column("status", priority=0, style=_status_style)


def outcome_columns(kind: str) -> list[Column]:
    """The columns of `show_outcomes`; some are printed only if an item failed."""
    return [Column(kind), _STATUS, Column("error"), Column("message", priority=1)]


def show_outcomes(out: Output, outcomes: Sequence[Outcome], kind: str, done: str) -> None:
    """Print a row per item of this `kind` (`topic`); CliError if one failed."""
    failed = [one for one in outcomes if one.error]
    if len(outcomes) > 1 or not failed:
        columns = outcome_columns(kind)
        if not out.options.columns:
            columns = [one for one in columns if one.key in _shown(kind, any_failed=bool(failed))]
        out.rows([_row(one, kind, done) for one in outcomes], columns, name=kind, strict=False)
    raise_failures(outcomes, kind)


def _shown(kind: str, *, any_failed: bool) -> set[str]:
    return {kind, "status", "message"} if any_failed else {kind, "status"}


def raise_failures(outcomes: Sequence[Outcome], kind: str) -> None:
    """CliError with the first failure, if there is one."""
    if failed := [one for one in outcomes if one.error]:
        raise _failure(failed, len(outcomes), kind)


def _row(one: Outcome, kind: str, done: str) -> dict[str, object]:
    if not one.error:
        return {kind: one.name, "status": one.message or done}
    return {kind: one.name, "status": "failed", "error": one.error.name, "message": one.reason}


def _failure(failed: Sequence[Outcome], total: int, kind: str) -> CliError:
    first = failed[0]
    if total == 1:
        return CliError(f"{kind} {first.name}: {first.reason}", outcome_hint(first, kind))
    return CliError(
        f"{len(failed)} of {total} {kind}s failed; the first, {first.name}: {first.reason}",
        outcome_hint(first, kind),
    )
