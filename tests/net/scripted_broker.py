"""A broker with scripted responses: for old brokers, and for failures that no real one has.

It speaks through our listener and codec; what they do is proved elsewhere, against real clients.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from broker.errors import ErrorCode
from broker.net.connection import CloseConnection, Peer, ResponseParts
from broker.net.listener import Listener
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode_from, encode_into
from broker.protocol.framing import SIZE, set_size
from broker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    decode_request_header,
    response_header_version,
)
from broker.protocol.messages import request_class
from broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker.protocol.schema import Response
from tests.net.support import LOCAL, listening

Script = Callable[[Any], Response | Awaitable[Response]]

NEWEST: Final[Mapping[ApiKey, tuple[int, int]]] = {
    api: request_class(api).versions for api in ApiKey
}


class ScriptedBroker:
    """Responds by `scripts`, one per API, and records the requests."""

    def __init__(
        self, scripts: Mapping[ApiKey, Script], versions: Mapping[ApiKey, tuple[int, int]] = NEWEST
    ) -> None:
        self.scripts = dict(scripts)
        self.versions = versions
        self.asked: list[tuple[ApiKey, int]] = []
        """The API and the version of every request, in order."""
        self.listener: Listener
        self.num_connections = 0

    @property
    def address(self) -> str:
        """The address as a bootstrap server."""
        return f"127.0.0.1:{self.listener.address.port}"

    def count(self, api: ApiKey) -> int:
        """How many requests of this API it received."""
        return [asked for asked, _ in self.asked].count(api)

    def __call__(self, frame: memoryview, peer: Peer) -> ResponseParts | Awaitable[ResponseParts]:
        header, body = decode_request_header(frame)
        api, version = ApiKey(header.request_api_key), header.request_api_version
        self.asked.append((api, version))
        lowest, highest = self.versions.get(api, (0, -1))
        if api is ApiKey.API_VERSIONS:
            self.num_connections += version == NEWEST[api][1]  # the first request on each
            supported = lowest <= version <= highest
            return _encode(header, self._api_versions(supported), version if supported else 0)
        if not lowest <= version <= highest:
            raise CloseConnection(f"{api.name} v{version} is not served")
        request, _ = decode_from(request_class(api), frame, body, version)
        response = self.scripts[api](request)
        if isinstance(response, Response):
            return _encode(header, response, version)
        return _encode_later(header, response, version)

    def _api_versions(self, supported: bool) -> ApiVersionsResponse:
        rows = [
            ApiVersion(api_key=api, min_version=lowest, max_version=highest)
            for api, (lowest, highest) in self.versions.items()
            if supported or api is ApiKey.API_VERSIONS
        ]
        code = ErrorCode.NONE if supported else ErrorCode.UNSUPPORTED_VERSION
        return ApiVersionsResponse(error_code=code, api_keys=rows)


def _encode(header: RequestHeader, response: Response, version: int) -> ResponseParts:
    head = bytearray(SIZE.size)
    own = ResponseHeader(correlation_id=header.correlation_id)
    encode_into(own, response_header_version(header.request_api_key, version), head)
    return set_size(encode_into(response, version, head))


async def _encode_later(
    header: RequestHeader, response: Awaitable[Response], version: int
) -> ResponseParts:
    return _encode(header, await response, version)


@asynccontextmanager
async def running(
    scripts: Mapping[ApiKey, Script] | None = None,
    versions: Mapping[ApiKey, tuple[int, int]] = NEWEST,
    port: int = 0,
) -> AsyncIterator[ScriptedBroker]:
    """A scripted broker that listens; by default a cluster of its own, with id 0."""
    broker = ScriptedBroker(scripts or {}, versions)
    broker.scripts.setdefault(ApiKey.METADATA, lambda _: cluster_of(broker))
    async with listening(broker, LOCAL._replace(port=port)) as broker.listener:
        yield broker


def cluster_of(
    *brokers: ScriptedBroker,
    controller_id: int = 0,
    leaders: Mapping[str, list[int]] | None = None,
) -> MetadataResponse:
    """Metadata of a cluster: brokers by id, topics with the leader of each partition."""
    return MetadataResponse(
        cluster_id="scripted",
        controller_id=controller_id,
        brokers=[
            MetadataResponseBroker(
                node_id=number, host="127.0.0.1", port=broker.listener.address.port
            )
            for number, broker in enumerate(brokers)
        ],
        topics=[
            MetadataResponseTopic(
                name=name,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index,
                        leader_id=leader,
                        error_code=0 if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                    )
                    for index, leader in enumerate(partitions)
                ],
            )
            for name, partitions in (leaders or {}).items()
        ],
    )


def hang_up(_: object) -> Response:
    """A script that closes the connection instead of responding."""
    raise CloseConnection("hung up")


def once_set(event: asyncio.Event, response: Callable[[], Response]) -> Script:
    """A script that responds when `event` is set."""

    async def answer() -> Response:
        await event.wait()
        return response()

    return lambda _: answer()
