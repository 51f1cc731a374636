"""The config APIs without a network: the handlers over a store in memory."""

from collections.abc import Awaitable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from broker.api.context import RequestContext
from broker.api.table import TABLE
from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.protocol.codec import decode, encode


class MemoryConfigStore:
    """A ConfigStore in memory."""

    def __init__(self) -> None:
        self.configs: dict[tuple[str, str], dict[str, str]] = {}

    async def read(self, entity_type: str, name: str) -> dict[str, str]:
        return dict(self.configs.get((str(entity_type), name), {}))

    async def write(self, entity_type: str, name: str, config: Mapping[str, str]) -> None:
        self.configs[str(entity_type), name] = dict(config)


class ConfigApis:
    """The config handlers of a broker with the given topics."""

    def __init__(self, static: Mapping[str, str], *topics: str, broker_id: int = 1) -> None:
        self.store = MemoryConfigStore()
        # Not parse_config: descriptions must not depend on whether a setting is supported.
        self.dynamic = DynamicConfig(BrokerConfig.parse(static), broker_id)
        self._services = SimpleNamespace(
            authorizer=None,
            dynamic=self.dynamic,
            config_store=self.store,
            metadata=SimpleNamespace(topics=dict.fromkeys(topics)),
        )

    async def send(self, request: Any, version: int | None = None) -> Any:
        """Handle a request; both messages are encoded and decoded as on the wire."""
        row = TABLE[request.api_key]
        version = row.versions[1] if version is None else version
        context = cast(
            RequestContext, SimpleNamespace(api_version=version, services=self._services)
        )
        response = row.handle(decode(type(request), encode(request, version), version), context)
        if isinstance(response, Awaitable):
            response = await response
        assert response is not None
        return decode(type(response), encode(response, version), version)
