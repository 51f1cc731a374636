"""Reads a partition of `__consumer_offsets` back into groups.

The last record of a key wins, a null value takes it away; so a compacted log reads the same as the
log it was made from. Offsets of transactions wait, per producer, for the marker that ends them;
what is still waiting at the end of the log goes on waiting in the group.
"""

import logging
from collections import defaultdict
from collections.abc import Callable

from broker.errors import CorruptRecord
from broker.group.group import Group
from broker.group.member import Member
from broker.group.offsets import AppendedOffset
from broker.group.records import (
    GroupKey,
    OffsetKey,
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


class Replay:
    """Give it the batches in order, then ask for the groups."""

    def __init__(self) -> None:
        self._offsets: dict[OffsetKey, AppendedOffset] = {}
        self._open: dict[int, dict[OffsetKey, AppendedOffset]] = {}
        """Offsets of transactions without a marker yet, by producer id."""
        self._groups: dict[str, GroupMetadataValue] = {}

    def apply(self, batch: Batch) -> None:
        """The next batch. A record that cannot be read is logged and left out: one bad commit
        must not cost a partition its groups."""
        if batch.header.is_control:
            self._end_transaction(batch)
            return
        offsets = self._offsets
        if batch.header.is_transactional:
            offsets = self._open.setdefault(batch.header.producer_id, {})
        batch_offset = -1
        for offset, _, key, value, _ in batch.record_tuples():
            # Of what compaction left: the first record stands for the batch, as in Kafka.
            batch_offset = offset if batch_offset < 0 else batch_offset
            try:
                self._apply_record(key, value, offsets, batch_offset)
            except CorruptRecord as error:
                logger.error("record is ignored offset=%s error=%s", offset, error)

    def _apply_record(
        self,
        key: bytes | None,
        value: bytes | None,
        offsets: dict[OffsetKey, AppendedOffset],
        batch_offset: int,
    ) -> None:
        about = read_key(key)
        if isinstance(about, GroupKey):
            self._apply_group(about.group_id, value)
        elif about is None:
            logger.warning("record of an unknown kind is ignored key=%r", key)
        elif value is None:
            offsets.pop(about, None)
        else:
            offsets[about] = AppendedOffset(batch_offset, read_offset_value(value))

    def _apply_group(self, group_id: str, value: bytes | None) -> None:
        if value is None:
            self._groups.pop(group_id, None)
        else:
            self._groups[group_id] = read_group_value(value)

    def _end_transaction(self, batch: Batch) -> None:
        records = batch.record_tuples()
        if not records:
            return  # compaction took the marker: nothing of its transaction is left either
        ended = self._open.pop(batch.header.producer_id, {})
        if control_type(records[0][2]) is not ControlRecordType.COMMIT:
            return
        for key, appended in ended.items():
            current = self._offsets.get(key)
            if current is None or current.batch_offset < appended.batch_offset:
                self._offsets[key] = appended

    def groups(self, new_group: Callable[[str], Group]) -> list[Group]:
        """All groups the log knows of; those with offsets only are empty."""
        committed: dict[str, dict[TopicPartition, AppendedOffset]] = defaultdict(dict)
        for key, appended in self._offsets.items():
            committed[key.group_id][key.partition] = appended
        waiting: dict[str, dict[int, dict[TopicPartition, AppendedOffset]]] = defaultdict(dict)
        for producer_id, offsets in self._open.items():
            for key, appended in offsets.items():
                of_group = waiting[key.group_id].setdefault(producer_id, {})
                of_group[key.partition] = appended
        groups = []
        for group_id in self._groups.keys() | committed.keys() | waiting.keys():
            group = new_group(group_id)
            if value := self._groups.get(group_id):
                restore(group, value)
            group.offsets.load(committed.get(group_id, {}), waiting.get(group_id, {}))
            groups.append(group)
        return groups


def restore(group: Group, value: GroupMetadataValue) -> None:
    """Make a new group what its record says."""
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
    # Before Kafka 0.10.1 the session timeout was the rebalance timeout too.
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
