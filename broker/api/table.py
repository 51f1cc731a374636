"""The APIs this broker serves: one row each.

ApiVersions is computed from this table, so an API is advertised when, and only when, it is served.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from broker.api import (
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    fetch,
    list_offsets,
    metadata,
    produce,
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
        _row(ApiKey.API_VERSIONS, api_versions),
        _row(ApiKey.CREATE_TOPICS, create_topics),
        _row(ApiKey.DELETE_TOPICS, delete_topics),
        _row(ApiKey.DELETE_RECORDS, delete_records),
        _row(ApiKey.CREATE_PARTITIONS, create_partitions),
        _row(ApiKey.DESCRIBE_CLUSTER, describe_cluster),
    ]
)

api_versions.advertise((row.api_key, *row.versions) for row in TABLE.values())
