"""Metadata of a broker that has only just started."""

import asyncio
from types import SimpleNamespace
from typing import Any

from broker.api.metadata import handle
from broker.metadata_cache import MetadataCache
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
)


def test_regression_metadata_waits_until_the_controller_has_told_who_is_in_the_cluster() -> None:
    """librdkafka that hears of an empty cluster asks no more."""

    async def ask_and_tell() -> list[int]:
        metadata = MetadataCache("cluster")
        peer = SimpleNamespace(listener_name="PLAINTEXT")
        services = SimpleNamespace(metadata=metadata)
        context: Any = SimpleNamespace(api_version=12, peer=peer, services=services)
        waiting: Any = handle(MetadataRequest(topics=None), context)
        asked = asyncio.ensure_future(waiting)
        await asyncio.sleep(0)
        assert not asked.done()
        endpoint = UpdateMetadataEndpoint(host="localhost", port=9092, listener="PLAINTEXT")
        me = UpdateMetadataBroker(id=7, endpoints=[endpoint])
        metadata.update(UpdateMetadataRequest(controller_id=7, live_brokers=[me]))
        return [broker.node_id for broker in (await asked).brokers]

    assert asyncio.run(ask_and_tell()) == [7]
