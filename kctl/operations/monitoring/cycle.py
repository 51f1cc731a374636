"""One cycle of monitoring: few requests, whatever the number of groups and partitions.

Metadata, ListOffsets (start and end) once per leader, ListGroups per broker, DescribeGroups and
OffsetFetch for all groups of a coordinator at once, DescribeLogDirs per broker.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace

from broker.model import TopicPartition
from broker.net.client import Client
from broker.net.failures import ConnectionFailed
from kctl.admin.broker_queries import SCOPE
from kctl.admin.cluster import describe_cluster
from kctl.admin.group_source import CoordinatedGroups
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.admin.topics import find_topics
from kctl.model.cluster import Cluster
from kctl.model.lag import GroupLag, LogBounds, PartitionLag
from kctl.model.monitoring import ClusterSnapshot
from kctl.plans.lag import partition_lags
from kctl.plans.offset_times import OffsetTimes
from kctl.plans.trend import LagHistory


async def take_snapshot(client: Client, name: str) -> ClusterSnapshot:
    """What the cluster looks like now; brokers that do not answer are named in it.

    Committed offsets are read before log end offsets, so that no lag is negative.
    """
    cluster = await describe_cluster(client)
    topics = await find_topics(client)
    source = CoordinatedGroups(client)
    names = [one.group_id for one in await source.listed() if one.is_consumer_group]
    described, committed = await asyncio.gather(source.described(names), source.committed(names))
    places = [
        TopicPartition(topic.name, partition.id)
        for topic in topics
        for partition in topic.partitions
        if partition.leader is not None
    ]
    if places:
        await client.refresh_metadata({place.topic for place in places})
    starts = await log_starts(client, places)
    ends = await log_ends(client, places)
    bounds = LogBounds(starts, ends)
    return ClusterSnapshot(
        name,
        time.time(),
        cluster,
        topics,
        starts,
        ends,
        [
            GroupLag(group, tuple(partition_lags(group, committed[group.group_id], bounds)))
            for group in described
            if group.exists and group.group_id in committed
        ],
        await describe_log_dirs(client),
        tuple(SCOPE.get().failures.values()),
        certificates=await _certificates(client, cluster),
    )


async def _certificates(client: Client, cluster: Cluster) -> dict[int, float]:
    """When certificates expire; brokers that do not answer are missing, and named elsewhere."""
    found = {}
    for broker in cluster.brokers:
        if broker.id not in SCOPE.get().failures:
            with suppress(ConnectionFailed):
                expiry_s = await client.certificate_expiry(broker.id)
                if expiry_s is None:
                    return {}
                found[broker.id] = expiry_s
    return found


class Observer:
    """Adds what only several cycles show: lag in time, trends and verdicts."""

    def __init__(self, window_s: float) -> None:
        self._times = OffsetTimes()
        self._history = LagHistory(window_s)

    def observe(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        """The snapshot with times and movements; call it once per cycle, in order."""
        for place, end in snapshot.ends.items():
            self._times.add(place, end, snapshot.time_s)
        self._times.keep(set(snapshot.ends))
        lags = [lag for one in snapshot.groups for lag in one.partitions]
        seconds = {
            (lag.group_id, lag.place): found
            for lag in lags
            if lag.current_offset is not None
            and (found := self._times.lag_seconds(lag.place, lag.current_offset, snapshot.time_s))
            is not None
        }
        # Not by `replace`, which takes several times as long: there may be 100,000 of them.
        timed = [
            PartitionLag(
                lag.group_id,
                lag.place,
                lag.current_offset,
                lag.log_start_offset,
                lag.log_end_offset,
                lag.member,
                None
                if (known := seconds.get((lag.group_id, lag.place))) is None
                else round(known * 1000),
            )
            for lag in lags
        ]
        moved = self._history.add(snapshot.time_s, timed)
        keys = [(lag.group_id, lag.place) for lag in timed]
        return replace(snapshot, lag_seconds=seconds, movements=dict(zip(keys, moved, strict=True)))
