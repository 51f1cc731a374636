"""Replication quotas (KIP-73): limit the bandwidth of some replicas while they are reassigned.

The rate is a setting of the broker (`leader.replication.throttled.rate`, `follower.…`), the list of
throttled replicas one of their topic (`….throttled.replicas`). There is one throttle for what this
broker sends as a leader and one for what it fetches as a follower. All bytes of throttled replicas
are counted, but only replicas outside of the ISR have to wait: a throttle must not shrink the ISR.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from broker.model import TopicPartition

UNLIMITED: Final = 2**63 - 1
_EVERY_REPLICA: Final = "*"


class Rate:
    """Bytes per second, over the last few windows of time.

    Field `_samples`: (start of the window, bytes), oldest first.
    Field `_total`: the sum of their bytes.
    """

    __slots__ = ("_num_windows", "_samples", "_total", "_window_s")

    def __init__(self, num_windows: int = 11, window_s: int = 1) -> None:
        self._num_windows = num_windows
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()
        self._total = 0

    def record(self, num_bytes: int, now_s: float) -> None:
        """Count bytes that are sent or received now."""
        self._total += num_bytes
        if self._samples and now_s - self._samples[-1][0] < self._window_s:
            begin, before = self._samples.pop()
            self._samples.append((begin, before + num_bytes))
        else:
            self._samples.append((now_s, num_bytes))

    def measure(self, now_s: float) -> float:
        """The present rate."""
        oldest = now_s - self._num_windows * self._window_s
        while self._samples and self._samples[0][0] < oldest:
            self._total -= self._samples.popleft()[1]
        if not self._samples:
            return 0.0
        return self._total / max(now_s - self._samples[0][0], self._window_s)

    def seconds_above(self, limit: int, now_s: float) -> float:
        """How long the rate remains above a limit if nothing more is counted."""
        if self.measure(now_s) <= limit:
            return 0.0
        longest_s = self._num_windows * self._window_s
        enough_s = self._total / limit if limit else longest_s
        return max(self._samples[0][0] + min(enough_s, longest_s) - now_s, 0.0)


class Throttle:
    """The quota of one direction: what throttled replicas send, or what they fetch.

    Field `_replicas`: by topic, the partitions that are throttled here; None means all of them.
    """

    def __init__(
        self, rate: Rate | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = UNLIMITED
        """Bytes per second."""
        self._rate = rate or Rate()
        self._now_s = now_s
        self._replicas: dict[str, frozenset[int] | None] = {}

    def set_replicas(self, topic: str, replicas: Sequence[str], broker_id: int) -> None:
        """Throttle those replicas in a list of `partition:broker` (or `*`) that are here."""
        if _EVERY_REPLICA in replicas:
            self._replicas[topic] = None
            return
        pairs = (replica.split(":") for replica in replicas if replica)
        mine = frozenset(int(index) for index, broker in pairs if int(broker) == broker_id)
        if mine:
            self._replicas[topic] = mine
        else:
            self._replicas.pop(topic, None)

    def is_throttled(self, name: TopicPartition) -> bool:
        """Whether the partition's bytes count."""
        if name.topic not in self._replicas:
            return False
        partitions = self._replicas[name.topic]
        return partitions is None or name.partition in partitions

    def record(self, name: TopicPartition, num_bytes: int) -> None:
        """Count bytes of a partition, if it is throttled."""
        if self._replicas and self.is_throttled(name):
            self._rate.record(num_bytes, self._now_s())

    def holds_back(self, name: TopicPartition) -> bool:
        """Whether a replica of the partition has to wait if it is not in sync."""
        return bool(self._replicas) and self.is_throttled(name) and self.is_exceeded

    @property
    def is_exceeded(self) -> bool:
        """Whether the rate is above the limit."""
        return self._rate.measure(self._now_s()) > self.limit
