"""Sends requests of this broker to the active controller.

    A. This broker is the controller: the request is a local call.
    B. Another broker is: the request goes over the inter-broker listener.
    C. The controller is unknown, unreachable, or not the controller any more: retry with backoff.

After C a request is sent again even if it may have been executed. Those that are sent this way
(AlterPartition, ControlledShutdown, AllocateProducerIds, CreateTopics) tolerate that.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from broker.errors import ApiError, ErrorCode
from broker.net.broker_connection import Node
from broker.net.client import error_codes
from broker.net.peers import Peers
from broker.protocol.api_keys import ApiKey
from broker.protocol.schema import Request, ResponseT

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_S: Final = 0.05
_MAX_BACKOFF_S: Final = 0.5

Local = Mapping[int, Callable[[Any], Awaitable[Any]]]
"""Local handlers for when this broker is the controller, by API key."""


class NoController(Exception):
    """The controller is unknown."""


class NodeToControllerChannel:
    """The channel to the active controller."""

    def __init__(
        self, find_controller: Callable[[], Node | None], broker_id: int, peers: Peers
    ) -> None:
        self._find_controller = find_controller
        self._broker_id = broker_id
        self._peers = peers
        self.local: Local = {}
        """Set when the controller has been built."""

    async def send(self, request: Request[ResponseT]) -> ResponseT:
        """Send a request, retrying until an active controller has responded."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                response = await self.attempt(request)
                if ErrorCode.NOT_CONTROLLER not in error_codes(response):
                    return response
                reason = "the broker is not the controller any more"
            except ApiError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
                reason = error.message
            except (OSError, NoController) as error:
                reason = str(error)
            api = ApiKey(request.api_key).display_name
            logger.info("retrying request to the controller api=%s reason=%s", api, reason)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)

    async def attempt(self, request: Request[ResponseT]) -> ResponseT:
        """One attempt; NoController, OSError, or an ApiError of the local controller."""
        controller = self._find_controller()
        if controller is None:  # C
            raise NoController("no controller is known")
        if controller.node_id != self._broker_id:  # B
            return await self._peers.send(controller, request)
        response: ResponseT = await self.local[request.api_key](request)  # A
        return response
