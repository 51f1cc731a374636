"""Consumer lag: committed offsets compared with the logs."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.group_source import CoordinatedGroups, GroupSource
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.admin.new_groups import share_start_offsets
from kctl.admin.record_times import Place, record_times
from kctl.model.lag import GroupLag, LogBounds, PartitionLag
from kctl.plans.lag import first_unread, partition_lags


async def group_lags(
    client: Client,
    groups: Iterable[str],
    *,
    source: GroupSource | None = None,
    now_ms: int | None = None,
) -> list[GroupLag]:
    """The groups, sorted by name, with the lag of every partition; with `now_ms` also in time.

    `source` is where the groups are stored, by default their coordinators. Committed offsets are
    read before log end offsets, so that commits in between cannot make a lag negative. For share
    groups, their start offsets take the place of committed offsets.
    """
    names = list(groups)
    kept = source or CoordinatedGroups(client)
    described, committed = await asyncio.gather(kept.described(names), kept.committed(names))
    unread: dict[str, list[TopicPartition]] = {}
    if shared := [group.group_id for group in described if group.is_share_group]:
        for name, own in (await share_start_offsets(client, shared)).items():
            committed[name] = {place: offset for place, offset in own.items() if offset is not None}
            unread[name] = [place for place, offset in own.items() if offset is None]
    places = {place for offsets in committed.values() for place in offsets}
    places |= {place for own in unread.values() for place in own}
    places |= {p for group in described for member in group.members for p in member.assignment}
    known = await _existing(client, places)
    starts, ends = await asyncio.gather(log_starts(client, known), log_ends(client, known))
    bounds = LogBounds(starts, ends)
    found = [
        GroupLag(
            group,
            tuple(
                partition_lags(
                    group, committed[group.group_id], bounds, unread.get(group.group_id, ())
                )
            ),
        )
        for group in described
        if group.group_id in committed  # its coordinator may have stopped answering in between
    ]
    return found if now_ms is None else await _with_times(client, found, now_ms)


async def _existing(client: Client, places: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The partitions that exist; groups keep offsets of deleted topics."""
    wanted = set(places)
    if wanted:
        await client.refresh_metadata({place.topic for place in wanted})
    return sorted(place for place in wanted if place in client.cluster.leaders)


async def _with_times(client: Client, found: Sequence[GroupLag], now_ms: int) -> list[GroupLag]:
    """The groups with the age of their first unread records."""
    unread = {one.group.group_id: first_unread(one.partitions) for one in found}
    times = await record_times(client, (place for own in unread.values() for place in own.items()))
    return [
        replace(
            one,
            partitions=tuple(
                replace(
                    lag,
                    time_lag_ms=_waiting_ms(
                        lag, _time_of(lag, unread[lag.group_id], times), now_ms
                    ),
                )
                for lag in one.partitions
            ),
        )
        for one in found
    ]


def _time_of(
    lag: PartitionLag, unread: Mapping[TopicPartition, int], times: Mapping[Place, int]
) -> int | None:
    return times.get((lag.place, unread[lag.place])) if lag.place in unread else None


def _waiting_ms(lag: PartitionLag, written_ms: int | None, now_ms: int) -> int | None:
    if lag.lag == 0:
        return 0
    return None if written_ms is None else max(0, now_ms - written_ms)
