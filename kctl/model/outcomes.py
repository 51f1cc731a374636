"""Result of a change for one topic, partition, group or config."""

from dataclasses import dataclass

from broker.errors import ErrorCode


@dataclass(frozen=True)
class Outcome:
    """Result of one change; `error` is NONE on success."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    """The broker's error message; on success, an optional text instead of "done"."""

    @property
    def reason(self) -> str:
        """Why it failed: the broker's message and the error code."""
        return f"{self.message or 'the cluster refused'} ({self.error.name})"


def outcome(name: str, error_code: int, message: str | None = None) -> Outcome:
    """An outcome from the fields of a response."""
    try:
        return Outcome(name, ErrorCode(error_code), message or "")
    except ValueError:  # a code that kctl does not know
        return Outcome(name, ErrorCode.UNKNOWN_SERVER_ERROR, f"error {error_code}: {message}")
