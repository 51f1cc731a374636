"""Coordinators of groups and transactional ids."""

from collections import defaultdict
from collections.abc import Iterable

from broker.errors import ApiError, ErrorCode
from broker.net.client import GROUP, TRANSACTION, Client
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.schema import Request, ResponseT
from kctl import __version__
from kctl.admin.broker_queries import change

_MANY_KEYS_SINCE = 4
"""The first version of FindCoordinator that takes several keys."""
_NOUNS = {GROUP: "group", TRANSACTION: "transactional id"}


async def coordinators_of(
    client: Client, keys: Iterable[str], key_type: int = GROUP
) -> dict[int, list[str]]:
    """Keys by the id of their coordinator; one request for all keys since Kafka 3.0."""
    wanted = list(dict.fromkeys(keys))
    if not wanted:
        return {}
    await client.refresh_metadata()
    # From the broker that `send` uses: another one, picked here, could be hung.
    request = ApiVersionsRequest(client_software_name="kctl", client_software_version=__version__)
    served = await client.send(request)
    newest = max(
        (a.max_version for a in served.api_keys if a.api_key == ApiKey.FIND_COORDINATOR), default=0
    )
    by_node: dict[int, list[str]] = defaultdict(list)
    if newest < _MANY_KEYS_SINCE:
        for key in wanted:
            by_node[await _find_one(client, key, key_type)].append(key)
        return by_node
    query = FindCoordinatorRequest(coordinator_keys=wanted, key_type=key_type)
    for found in (await client.send(query)).coordinators:
        _check(found.error_code, found.error_message, found.key, key_type)
        by_node[found.node_id].append(found.key)
    return by_node


async def change_by_coordinator(
    client: Client, group: str, request: Request[ResponseT]
) -> ResponseT:
    """The answer of a group's coordinator to a change."""
    (coordinator_id,) = await coordinators_of(client, [group])
    return await change(client, coordinator_id, lambda: client.send_to_coordinator(group, request))


async def _find_one(client: Client, key: str, key_type: int) -> int:
    answer = await client.send(FindCoordinatorRequest(key=key, key_type=key_type))
    _check(answer.error_code, answer.error_message, key, key_type)
    return answer.node_id


def _check(error_code: int, message: str | None, key: str, key_type: int) -> None:
    if error_code:
        raise ApiError(ErrorCode(error_code), message or f"{_NOUNS[key_type]} {key}")
