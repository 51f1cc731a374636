"""Waiting for acknowledgements of records: reports brokers that do not answer meanwhile."""

import time
from collections.abc import Callable

from kctl.admin.broker_queries import every_broker
from kctl.admin.connection import ask
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session
from kctl.views.quantities import plural

NOTICE_S = 5.0
"""Without an acknowledgement for this time, brokers that do not answer are reported."""

Waiting = Callable[[int], None]
"""Called while records wait for acknowledgements, with their number."""


class AcknowledgementWatch:
    """Notices that no record is acknowledged any more.

    librdkafka retries in silence until the leader answers or another one is elected, which takes
    the ZooKeeper session timeout of a broker that hangs. Meanwhile the user is shown which broker
    that is. Brokers are queried once per stall.
    """

    def __init__(self, session: Session, *, limit_s: float | None = None) -> None:
        """CliError after `limit_s` without an acknowledgement; None if librdkafka has a limit."""
        self._session = session
        self._limit_s = limit_s
        self._outstanding = 0
        self._since_s = time.monotonic()
        self._is_reported = False

    def check(self, outstanding: int) -> None:
        """Note the number of records that are not acknowledged yet."""
        now_s = time.monotonic()
        if outstanding != self._outstanding:
            self._outstanding, self._since_s, self._is_reported = outstanding, now_s, False
        silent_s = now_s - self._since_s
        if silent_s >= NOTICE_S and not self._is_reported:
            self._is_reported = True
            self._report()
        if self._limit_s is not None and silent_s >= self._limit_s:
            raise unacknowledged(outstanding, self._limit_s)

    def _report(self) -> None:
        session = self._session
        before = dict(session.unanswered)
        ask(session, lambda client: every_broker(client, client.probe), partial=True)
        failures = {b: text for b, text in session.unanswered.items() if b not in before}
        session.unanswered = before
        count = plural(self._outstanding, "record")
        for _, failure in sorted(failures.items()):
            session.out.note(f"{failure}: waiting for acknowledgements of {count}")


def unacknowledged(records: int, limit_s: float, topic: str = "") -> CliError:
    """Records may have been written although their acknowledgement did not arrive."""
    count = plural(records, "record")
    check = f"kctl consume {topic} --last {records} shows the newest records; " if topic else ""
    return CliError(
        f"{count} not acknowledged within {limit_s:g} s: {'it' if records == 1 else 'they'} may "
        "have been written",
        f"{check}kctl health shows brokers that do not answer",
        ExitStatus.TIMED_OUT,
    )
