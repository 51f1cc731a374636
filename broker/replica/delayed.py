"""Waiting for partitions to move: Kafka's purgatory.

A partition moves in two ways: its log end grows, which followers wait for, and its high watermark
rises, which consumers and producers with acks=all wait for. (A leader without followers moves both
at once.) Whatever else happens to it, a new leader or its end, concerns them all.

Who waits subscribes with a callback at every partition it cares for. A partition never polls and is
never polled.
"""

from collections.abc import Callable

Callback = Callable[[], None]


class Moves:
    """One partition's side: whom to call when it moves.

    Callbacks only take a note: they neither subscribe nor unsubscribe anybody.
    """

    __slots__ = ("_at_high_watermark", "_at_log_end")

    def __init__(self) -> None:
        self._at_log_end: set[Callback] = set()
        self._at_high_watermark: set[Callback] = set()

    def subscribe(
        self, *, at_log_end: Callback | None = None, at_high_watermark: Callback | None = None
    ) -> None:
        """Call these at every move of that kind, until they are unsubscribed."""
        if at_log_end is not None:
            self._at_log_end.add(at_log_end)
        if at_high_watermark is not None:
            self._at_high_watermark.add(at_high_watermark)

    def unsubscribe(self, *callbacks: Callback) -> None:
        """Call them no more."""
        self._at_log_end.difference_update(callbacks)
        self._at_high_watermark.difference_update(callbacks)

    def wake(self) -> None:
        """Everything may have changed."""
        self.log_end_moved()
        self.high_watermark_moved()

    def log_end_moved(self) -> None:
        """There are more records, not all of them replicated."""
        for callback in self._at_log_end:
            callback()

    def high_watermark_moved(self) -> None:
        """More records are replicated."""
        for callback in self._at_high_watermark:
            callback()
