"""Traffic per second from several readings of a cluster.

Brokers with metrics count their own traffic. For others, records are counted by log end offsets,
and bytes by the sizes in the log directories; what consumers read is not visible from outside.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from broker.model import TopicPartition
from kctl.model.monitoring import ClusterSnapshot
from kctl.model.top import BrokerCounters, Copy, Rates, Reading, TrafficCounters, TrafficRates
from kctl.plans.reassignment.progress import copied_bytes

RATE_READINGS: Final = 5
"""Readings over which rates are taken: they follow changes without jumping."""
_HISTORY: Final = 40


class TrafficHistory:
    """The last readings of one cluster. *Invariant*: in the order of their time."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque(maxlen=RATE_READINGS)
        self._by_topic: dict[str, deque[float | None]] = {}

    def add(self, reading: Reading) -> TrafficRates:
        """The rates including this reading; all are unknown after the first."""
        before = self._readings[-1] if self._readings else None
        self._readings.append(reading)
        partitions = partition_rates(self._readings[0], reading)
        self._note(reading, before)
        return TrafficRates(
            partitions,
            _by_topic(self._readings[0], reading, partitions),
            _by_broker(self._readings[0], reading, partitions),
            _requests(self._readings[0], reading),
            _copies(self._readings[0], reading),
            {topic: list(values) for topic, values in self._by_topic.items()},
        )

    def _note(self, reading: Reading, before: Reading | None) -> None:
        if before is None:
            return
        latest = partition_rates(before, reading)
        kept = {}
        for topic in reading.snapshot.topics:
            places = [TopicPartition(topic.name, one.id) for one in topic.partitions]
            values = self._by_topic.get(topic.name, deque(maxlen=_HISTORY))
            values.append(_sum(latest[place].messages_in for place in places if place in latest))
            kept[topic.name] = values
        self._by_topic = kept


def partition_rates(first: Reading, last: Reading) -> dict[TopicPartition, Rates]:
    """Records and bytes per second of each partition that both readings know."""
    before, now = first.snapshot, last.snapshot
    seconds = now.time_s - before.time_s
    if seconds <= 0:
        return {}
    old_sizes, sizes = leader_sizes(before, now), leader_sizes(now, now)
    rates = {}
    for place, end in now.ends.items():
        written = end - before.ends.get(place, end + 1)
        if written < 0:  # unknown before, or recreated since
            continue
        size, old_size = sizes.get(place), old_sizes.get(place)
        byte_rate = None
        if size is not None and old_size is not None:
            grown = size - old_size
            # Deleted segments hide what was written: then records of average size are assumed.
            if now.starts.get(place) != before.starts.get(place) or grown < 0:
                grown = round(written * size / max(1, end - now.starts.get(place, 0)))
            byte_rate = grown / seconds
        rates[place] = Rates(written / seconds, byte_rate)
    return rates


def leader_sizes(snapshot: ClusterSnapshot, leaders: ClusterSnapshot) -> dict[TopicPartition, int]:
    """Bytes of the replicas in `snapshot` on the brokers that lead in `leaders`."""
    sizes = snapshot.replica_sizes()
    return {
        place: sizes[place, one.leader]
        for topic in leaders.topics
        for one in topic.partitions
        if one.leader is not None
        and (place := TopicPartition(topic.name, one.id), one.leader) in sizes
    }


def _by_topic(
    first: Reading, last: Reading, partitions: Mapping[TopicPartition, Rates]
) -> dict[str, Rates]:
    found = {}
    for topic in last.snapshot.topics:
        places = [TopicPartition(topic.name, one.id) for one in topic.partitions]
        seen = _total(partitions[place] for place in places if place in partitions)
        leaders = {one.leader for one in topic.partitions}
        own = [_counted(first, last, leader, topic.name) for leader in leaders]
        known = [one for one in own if one is not None]
        found[topic.name] = _total(known) if own and len(known) == len(own) else seen
    return found


def _by_broker(
    first: Reading, last: Reading, partitions: Mapping[TopicPartition, Rates]
) -> dict[int, Rates]:
    led: dict[int, list[Rates]] = {}
    for topic in last.snapshot.topics:
        for one in topic.partitions:
            place = TopicPartition(topic.name, one.id)
            if one.leader is not None and place in partitions:
                led.setdefault(one.leader, []).append(partitions[place])
    return {
        broker.id: _counted(first, last, broker.id, None) or _total(led.get(broker.id, ()))
        for broker in last.snapshot.cluster.brokers
    }


def _counted(
    first: Reading, last: Reading, broker_id: int | None, topic: str | None
) -> Rates | None:
    """The rates that a broker counted itself, of a topic or of all; None if it did not."""
    pair = _counters(first, last, broker_id)
    if pair is None:
        return None
    before, now = pair
    old, new = _traffic(before, topic), _traffic(now, topic)
    seconds = now.time_s - before.time_s
    return Rates(
        (new.messages_in - old.messages_in) / seconds,
        (new.bytes_in - old.bytes_in) / seconds,
        (new.bytes_out - old.bytes_out) / seconds,
    )


def _counters(
    first: Reading, last: Reading, broker_id: int | None
) -> tuple[BrokerCounters, BrokerCounters] | None:
    """The counters of a broker in both readings, if it was not restarted in between."""
    if broker_id is None:
        return None
    before, now = first.counters.get(broker_id), last.counters.get(broker_id)
    if before is None or now is None or now.time_s <= before.time_s:
        return None
    return None if now.requests < before.requests else (before, now)


def _traffic(counters: BrokerCounters, topic: str | None) -> TrafficCounters:
    return counters.total if topic is None else counters.by_topic.get(topic, TrafficCounters())


def _requests(first: Reading, last: Reading) -> dict[int, float]:
    pairs = {broker_id: _counters(first, last, broker_id) for broker_id in last.counters}
    return {
        broker_id: (pair[1].requests - pair[0].requests) / (pair[1].time_s - pair[0].time_s)
        for broker_id, pair in pairs.items()
        if pair is not None
    }


def _copies(first: Reading, last: Reading) -> dict[TopicPartition, Copy]:
    seconds = last.snapshot.time_s - first.snapshot.time_s
    old, new = first.snapshot.replica_sizes(), last.snapshot.replica_sizes()
    copies = {}
    for place, one in last.moving.items():
        arrived, total = copied_bytes(one, new)
        grown = arrived - copied_bytes(one, old)[0]
        copies[place] = Copy(arrived, total, max(0, grown) / seconds if seconds > 0 else None)
    return copies


def _total(rates: Iterable[Rates]) -> Rates:
    found = list(rates)
    return Rates(
        _sum(one.messages_in for one in found),
        _sum(one.bytes_in for one in found),
        _sum(one.bytes_out for one in found),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
