"""How kctl fails: one exception for people, and the exit statuses scripts can rely on."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """What the shell gets to see. Documented in every man page; never renumbered."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FOUND = 3
    """A check ran well and found something (lag above the limit, a damaged segment)."""
    TIMED_OUT = 4
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """One phrase for the manual."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitStatus.OK: "done",
    ExitStatus.FAILED: "it failed, or part of it did",
    ExitStatus.USAGE: "the command line is wrong",
    ExitStatus.FOUND: "a check found something",
    ExitStatus.TIMED_OUT: "the cluster did not answer in time",
    ExitStatus.INTERRUPTED: "interrupted from the keyboard",
}


class CliError(Exception):
    """A failure that has been understood: what is wrong, and what to do about it.

    Commands raise it, `app.main` prints it once and ends with `status`. Anything else that
    reaches `app.main` is a mistake of ours and is reported as one.
    """

    def __init__(
        self, message: str, hint: str = "", status: ExitStatus = ExitStatus.FAILED
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status
