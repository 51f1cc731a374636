"""Expiration of committed offsets (KIP-211).

group                                    an offset expires `offsets.retention.minutes` after
empty, had members before                the group became empty
stable, consumers with known topics      its last commit, unless its topic is subscribed
never had members (simple consumers)     its last commit
any other                                (never)
"""

from broker.group.config import GroupConfig
from broker.group.group import Group
from broker.group.offsets import OffsetAndMetadata
from broker.group.states import EMPTY, STABLE
from broker.model import TopicPartition


def remove_expired_offsets(group: Group, config: GroupConfig, now_ms: int) -> list[TopicPartition]:
    """Remove and return the expired offsets of a group."""
    retention_ms = config.offsets_retention_ms
    if group.membership.protocol_type is None:
        return group.offsets.remove_expired(now_ms, retention_ms, _last_commit)
    if group.state is EMPTY:
        since = group.state_timestamp_ms

        def became_empty(value: OffsetAndMetadata) -> int:
            return value.commit_timestamp_ms if since is None else since

        return group.offsets.remove_expired(now_ms, retention_ms, became_empty)
    if group.state is STABLE and group.is_consumer_group and group.subscribed_topics is not None:
        kept = group.subscribed_topics
        return group.offsets.remove_expired(now_ms, retention_ms, _last_commit, kept)
    return []


def _last_commit(value: OffsetAndMetadata) -> int:
    return value.commit_timestamp_ms
