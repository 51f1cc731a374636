"""A broker that reports long turns of its event loop: `python -m tests.support.metered_broker`.

While a turn lasts no other client is served. Turns are measured in CPU time of the loop's thread,
which, unlike a client's wait, does not depend on what else runs on the machine. For each turn above
REPORTED_S one line goes to stderr: its CPU time, and where it was in the middle of it.
"""

import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from broker.__main__ import main
from broker.net import epoll_poller

REPORTED_S = 0.03
SAMPLE_EVERY_S = 0.01
LINE = r"long turn cpu_ms=(\d+) in=(.*)"


class MeteredEpoll:
    """Wraps an epoll object; a turn is the time from the end of one poll to the next."""

    def __init__(self, epoll: Any) -> None:
        self._epoll = epoll
        self._thread = threading.get_ident()
        self._began_s: float | None = None
        self._began_cpu_s = 0.0
        self._stack = ""
        threading.Thread(target=self._sample, daemon=True).start()

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        """As epoll.poll."""
        if self._began_s is not None:
            self._began_s = None
            spent_s = time.thread_time() - self._began_cpu_s
            if spent_s > REPORTED_S:
                sys.stderr.write(f"long turn cpu_ms={spent_s * 1000:.0f} in={self._stack}\n")
                sys.stderr.flush()
        events: list[tuple[int, int]] = self._epoll.poll(timeout)
        self._stack = ""
        self._began_cpu_s, self._began_s = time.thread_time(), time.monotonic()
        return events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)

    def _sample(self) -> None:
        while True:
            time.sleep(SAMPLE_EVERY_S)
            began_s = self._began_s
            if began_s is not None and time.monotonic() - began_s > REPORTED_S / 2:
                frame = sys._current_frames().get(self._thread)
                calls = traceback.extract_stack(frame)[-6:]
                self._stack = " < ".join(
                    f"{Path(call.filename).name}:{call.lineno}" for call in reversed(calls)
                )


class MeteredPoller(epoll_poller.EpollPoller):
    """A poller that measures turns."""

    def __init__(self) -> None:
        super().__init__()
        self._epoll = MeteredEpoll(self._epoll)  # type: ignore[assignment]


if __name__ == "__main__":
    epoll_poller.EpollPoller = MeteredPoller  # type: ignore[misc]
    main()
