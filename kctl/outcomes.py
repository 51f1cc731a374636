"""What became of each thing that a changing command was asked to change.

All are tried; rows say what became of each. One that fails makes the whole run a failure, with the
reason on stderr, so that a script needs to look at nothing but the status.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.errors import ErrorCode
from kctl.errors import CliError
from kctl.output import Output
from kctl.tables import Column

HINTS = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "--if-not-exists takes that for done",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "kctl topics list shows those there are",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "a name has at most 249 letters, digits, '.', '_' and '-'",
    ErrorCode.INVALID_REPLICATION_FACTOR: "kctl brokers list shows how many brokers there are",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "kctl brokers list shows the ids of the brokers",
    ErrorCode.INVALID_CONFIG: "kctl configs describe --all shows the settings and their values",
    ErrorCode.INVALID_PARTITIONS: "partitions can be added, never taken away",
    ErrorCode.TOPIC_DELETION_DISABLED: "the brokers are set to delete.topic.enable=false",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster or the topic's cleanup.policy forbids it",
    ErrorCode.REQUEST_TIMED_OUT: "it may still happen: look again; --timeout gives it longer",
    ErrorCode.OFFSET_OUT_OF_RANGE: "kctl offsets shows how far the partition goes",
}


@dataclass(frozen=True)
class Outcome:
    """One of them; `error` is NONE where it went well."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    """The broker's own words about the error; without one, what to say instead of "done"."""

    @property
    def reason(self) -> str:
        """Why it failed: the broker's words, or the code where it said nothing more."""
        return f"{self.message or 'the cluster refused'} ({self.error.name})"


def outcome(name: str, error_code: int, message: str | None = None) -> Outcome:
    """An outcome from the fields of a response."""
    try:
        return Outcome(name, ErrorCode(error_code), message or "")
    except ValueError:  # newer than our list
        return Outcome(name, ErrorCode.UNKNOWN_SERVER_ERROR, f"error {error_code}: {message}")


def show_outcomes(out: Output, outcomes: Sequence[Outcome], kind: str, done: str) -> None:
    """Print a row per `kind` (`topic`), `done` where it went well; CliError if one did not."""
    failed = [one for one in outcomes if one.error]
    if len(outcomes) > 1 or not failed:
        columns = [Column(kind), Column("status"), *([Column("message")] if failed else [])]
        out.rows([_row(one, kind, done) for one in outcomes], columns, name=kind)
    if failed:
        raise _failure(failed, len(outcomes), kind)


def _row(one: Outcome, kind: str, done: str) -> dict[str, object]:
    if not one.error:
        return {kind: one.name, "status": one.message or done}
    return {kind: one.name, "status": "failed", "error": one.error.name, "message": one.reason}


def _failure(failed: Sequence[Outcome], total: int, kind: str) -> CliError:
    first = failed[0]
    if total == 1:
        return CliError(f"{kind} {first.name}: {first.reason}", HINTS.get(first.error, ""))
    return CliError(
        f"{len(failed)} of {total} {kind}s failed; the first, {first.name}: {first.reason}",
        HINTS.get(first.error, ""),
    )
