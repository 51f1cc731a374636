"""The APIs this broker serves: one row each.

ApiVersions is computed from this table, so an API is advertised when, and only when, it is served.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from broker.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_features,
    update_metadata,
    write_txn_markers,
)
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import request_class
from broker.protocol.schema import Request, Response

Handler = Callable[[Any, RequestContext], Response | Awaitable[Response | None] | None]
ErrorResponse = Callable[[Any, ErrorCode], Response]


class Row(NamedTuple):
    """One API: what it is asked, who answers, and what it answers when the handler broke."""

    api_key: ApiKey
    request: type[Request[Any]]
    versions: tuple[int, int]
    handle: Handler
    error_response: ErrorResponse


def _row(api_key: ApiKey, module: ModuleType, versions: tuple[int, int] | None = None) -> Row:
    """The row of an API: its module has `handle` and `error_response`; all versions if not told."""
    request = request_class(api_key)
    return Row(api_key, request, versions or request.versions, module.handle, module.error_response)


def _table(rows: Iterable[Row]) -> Mapping[int, Row]:
    table: dict[int, Row] = {}
    for row in rows:
        if row.api_key in table:
            raise ValueError(f"{row.api_key.name} has two rows")
        table[row.api_key] = row
    return table


TABLE: Mapping[int, Row] = _table(
    [
        _row(ApiKey.PRODUCE, produce),
        _row(ApiKey.FETCH, fetch),
        _row(ApiKey.LIST_OFFSETS, list_offsets),
        _row(ApiKey.METADATA, metadata),
        _row(ApiKey.LEADER_AND_ISR, leader_and_isr),
        _row(ApiKey.STOP_REPLICA, stop_replica),
        _row(ApiKey.UPDATE_METADATA, update_metadata),
        _row(ApiKey.CONTROLLED_SHUTDOWN, controlled_shutdown),
        _row(ApiKey.OFFSET_COMMIT, offset_commit),
        _row(ApiKey.OFFSET_FETCH, offset_fetch),
        _row(ApiKey.FIND_COORDINATOR, find_coordinator),
        _row(ApiKey.JOIN_GROUP, join_group),
        _row(ApiKey.HEARTBEAT, heartbeat),
        _row(ApiKey.LEAVE_GROUP, leave_group),
        _row(ApiKey.SYNC_GROUP, sync_group),
        _row(ApiKey.DESCRIBE_GROUPS, describe_groups),
        _row(ApiKey.LIST_GROUPS, list_groups),
        _row(ApiKey.API_VERSIONS, api_versions),
        _row(ApiKey.CREATE_TOPICS, create_topics),
        _row(ApiKey.DELETE_TOPICS, delete_topics),
        _row(ApiKey.DELETE_RECORDS, delete_records),
        _row(ApiKey.INIT_PRODUCER_ID, init_producer_id),
        _row(ApiKey.ADD_PARTITIONS_TO_TXN, add_partitions_to_txn),
        _row(ApiKey.ADD_OFFSETS_TO_TXN, add_offsets_to_txn),
        _row(ApiKey.END_TXN, end_txn),
        _row(ApiKey.WRITE_TXN_MARKERS, write_txn_markers),
        _row(ApiKey.TXN_OFFSET_COMMIT, txn_offset_commit),
        _row(ApiKey.CREATE_PARTITIONS, create_partitions),
        _row(ApiKey.DELETE_GROUPS, delete_groups),
        _row(ApiKey.OFFSET_DELETE, offset_delete),
        _row(ApiKey.DESCRIBE_CLUSTER, describe_cluster),
        _row(ApiKey.DESCRIBE_CONFIGS, describe_configs),
        _row(ApiKey.ALTER_CONFIGS, alter_configs),
        _row(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs),
        _row(ApiKey.DESCRIBE_PRODUCERS, describe_producers),
        _row(ApiKey.DESCRIBE_TRANSACTIONS, describe_transactions),
        _row(ApiKey.LIST_TRANSACTIONS, list_transactions),
        _row(ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_partition_reassignments),
        _row(ApiKey.ALTER_REPLICA_LOG_DIRS, alter_replica_log_dirs),
        _row(ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs),
        _row(ApiKey.ELECT_LEADERS, elect_leaders),
        _row(ApiKey.LIST_PARTITION_REASSIGNMENTS, list_partition_reassignments),
        _row(ApiKey.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch),
        _row(ApiKey.ALTER_PARTITION, alter_partition),
        _row(ApiKey.UPDATE_FEATURES, update_features),
        _row(ApiKey.CONSUMER_GROUP_HEARTBEAT, consumer_group_heartbeat),
        _row(ApiKey.ALLOCATE_PRODUCER_IDS, allocate_producer_ids),
        _row(ApiKey.CONSUMER_GROUP_DESCRIBE, consumer_group_describe),
    ]
)

api_versions.advertise((row.api_key, *row.versions) for row in TABLE.values())
