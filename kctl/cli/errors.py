"""kctl's exception, and its exit statuses."""

from collections.abc import Callable
from enum import IntEnum
from typing import ParamSpec, TypeVar


class ExitStatus(IntEnum):
    """Exit statuses. Documented in every man page; never renumbered."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FOUND = 3
    """A check succeeded and found something (lag above the limit, a damaged segment)."""
    TIMED_OUT = 4
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The meaning, for the manual."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitStatus.OK: "done",
    ExitStatus.FAILED: "failed, completely or in part",
    ExitStatus.USAGE: "usage error",
    ExitStatus.FOUND: "a check found something",
    ExitStatus.TIMED_OUT: "the cluster, or one of its brokers, did not answer in time",
    ExitStatus.INTERRUPTED: "interrupted",
}


class CliError(Exception):
    """An expected failure: what is wrong, and a remedy.

    Commands raise it; `app.main` prints it once and exits with `status`. Any other exception that
    reaches `app.main` is reported as an internal error.
    """

    def __init__(
        self, message: str, hint: str = "", status: ExitStatus = ExitStatus.FAILED
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status


Arguments = ParamSpec("Arguments")

Result = TypeVar("Result")


def usage(
    parse: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run a parser of command-line text; its ValueError becomes a usage error."""
    try:
        return parse(*args, **kwargs)
    except ValueError as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from error


def usage_error(message: str, hint: str) -> CliError:
    """An error of the command line."""
    return CliError(message, hint, ExitStatus.USAGE)
