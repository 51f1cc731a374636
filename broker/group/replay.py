"""Turns the records of a partition of `__consumer_offsets` back into groups.

The last record of a key wins and a tombstone removes it, so a compacted log gives the same result
as the original one. Offsets of transactions are held per producer until their marker; those without
a marker at the log end stay pending in the group.

Most records are superseded by later ones, so keys and values are kept undecoded and only the last
ones are decoded. A record that cannot be decoded is logged and skipped, so that the others are
still loaded.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from broker.errors import CorruptRecord
from broker.group.group import Group
from broker.group.member import Member
from broker.group.offsets import AppendedOffset
from broker.group.records import (
    GroupKey,
    OffsetKey,
    is_group_key,
    is_offset_key,
    read_group_value,
    read_key,
    read_offset_value,
)
from broker.group.states import EMPTY, STABLE
from broker.model import TopicPartition
from broker.protocol.messages.group_records import GroupMetadataValue, MemberMetadata
from broker.records.batch import Batch
from broker.records.control import ControlRecordType, control_type

logger = logging.getLogger(__name__)

_Records = dict[bytes, tuple[int, bytes]]
"""By key: the offset of the record's batch, and the value."""


class Replay:
    """Apply the batches in log order, then get the groups."""

    def __init__(self) -> None:
        self._offsets: _Records = {}
        self._open: dict[int, _Records] = {}
        """Offsets of transactions without a marker so far, by producer id."""
        self._groups: _Records = {}

    def apply(self, batch: Batch) -> None:
        """Apply the next batch; CorruptRecord if it cannot be decoded."""
        if batch.header.is_control:
            self._end_transaction(batch)
            return
        offsets = self._offsets
        if batch.header.is_transactional:
            offsets = self._open.setdefault(batch.header.producer_id, {})
        batch_offset = -1
        for offset, _, key, value, _ in batch.record_tuples():
            # After compaction the first remaining record stands for the batch, as in Kafka.
            batch_offset = offset if batch_offset < 0 else batch_offset
            if key is None or not (is_offset_key(key) or is_group_key(key)):
                logger.warning("ignored record with an unknown key version offset=%s", offset)
                continue
            kept = offsets if is_offset_key(key) else self._groups
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = (batch_offset, value)

    def _end_transaction(self, batch: Batch) -> None:
        records = batch.record_tuples()
        if not records:
            return  # a marker is compacted only after all records of its transaction
        ended = self._open.pop(batch.header.producer_id, {})
        if control_type(records[0][2]) is not ControlRecordType.COMMIT:
            return
        for key, record in ended.items():
            current = self._offsets.get(key)
            if current is None or current[0] < record[0]:
                self._offsets[key] = record

    def groups(self, new_group: Callable[[str], Group]) -> list[Group]:
        """All groups in the log; those that have only offsets are empty."""
        stored = {key.group_id: value for key, value in _decode_groups(self._groups)}
        committed = _by_group(self._offsets)
        waiting = {producer_id: _by_group(records) for producer_id, records in self._open.items()}
        ids = set(stored) | set(committed) | {g for by_group in waiting.values() for g in by_group}
        groups = []
        for group_id in ids:
            group = new_group(group_id)
            if group_id in stored:
                restore(group, stored[group_id])
            group.offsets.load(
                committed.get(group_id, {}),
                {
                    producer_id: by_group[group_id]
                    for producer_id, by_group in waiting.items()
                    if group_id in by_group
                },
            )
            groups.append(group)
        return groups


def _by_group(records: _Records) -> Mapping[str, dict[TopicPartition, AppendedOffset]]:
    found: dict[str, dict[TopicPartition, AppendedOffset]] = defaultdict(dict)
    for key, appended in _decode_offsets(records):
        found[key.group_id][key.partition] = appended
    return found


def _decode_offsets(records: _Records) -> Iterator[tuple[OffsetKey, AppendedOffset]]:
    for raw_key, (batch_offset, raw_value) in records.items():
        try:
            key, value = read_key(raw_key), read_offset_value(raw_value)
        except CorruptRecord as error:
            logger.error(
                "ignored offset that cannot be decoded batch_offset=%s error=%s",
                batch_offset,
                error,
            )
            continue
        if isinstance(key, OffsetKey):
            yield key, AppendedOffset(batch_offset, value)


def _decode_groups(records: _Records) -> Iterator[tuple[GroupKey, GroupMetadataValue]]:
    for raw_key, (batch_offset, raw_value) in records.items():
        try:
            key, value = read_key(raw_key), read_group_value(raw_value)
        except CorruptRecord as error:
            logger.error(
                "ignored group that cannot be decoded batch_offset=%s error=%s", batch_offset, error
            )
            continue
        if isinstance(key, GroupKey):
            yield key, value


def restore(group: Group, value: GroupMetadataValue) -> None:
    """Set the state of a new group from its record."""
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    group.membership.leader = value.leader
    for member in value.members:
        group.membership.add(_member(member, value.protocol or ""), value.protocol_type)
    group.membership.protocol_type = value.protocol_type or None
    group.subscribed_topics = group.compute_subscribed_topics()
    group.state = STABLE if value.members else EMPTY
    timestamp_ms = value.current_state_timestamp
    group.state_timestamp_ms = None if timestamp_ms == -1 else timestamp_ms


def _member(stored: MemberMetadata, protocol_name: str) -> Member:
    # Before Kafka 0.10.1 the session timeout was also the rebalance timeout.
    has_own = stored.rebalance_timeout != -1
    return Member(
        member_id=stored.member_id,
        group_instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.rebalance_timeout if has_own else stored.session_timeout,
        session_timeout_ms=stored.session_timeout,
        protocols=((protocol_name, stored.subscription),),
        assignment=stored.assignment,
    )
