"""The way from this broker to the controller, whichever broker that is.

    A. this broker is the controller: it is asked directly, without a socket;
    B. another one is: it is asked over the listener that brokers use among themselves;
    C. nobody is known to be, cannot be reached, or says that it is not: look again, a little later.

Requests are sent again after C even if the first try may have been carried out; those that are sent
this way (AlterPartition, ControlledShutdown, AllocateProducerIds, CreateTopics) bear it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from broker.errors import ApiError, ErrorCode
from broker.net.broker_connection import Node
from broker.net.client import outcomes
from broker.net.peers import Peers
from broker.protocol.api_keys import ApiKey
from broker.protocol.schema import Request, ResponseT

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_S: Final = 0.05
_MAX_BACKOFF_S: Final = 0.5

Local = Mapping[int, Callable[[Any], Awaitable[Any]]]
"""What answers when this broker is the controller, by API key."""


class NoController(Exception):
    """There is nobody to ask at present."""


class ControllerChannel:
    """Sends requests to the active controller, and tries until one has answered."""

    def __init__(
        self, find_controller: Callable[[], Node | None], broker_id: int, peers: Peers
    ) -> None:
        self._find_controller = find_controller
        self._broker_id = broker_id
        self._peers = peers
        self.local: Local = {}

    async def send(self, request: Request[ResponseT]) -> ResponseT:
        """The answer of the active controller; waits for as long as there is none."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                response = await self.attempt(request)
                if ErrorCode.NOT_CONTROLLER not in outcomes(response):
                    return response
                reason = "it is not the controller any more"
            except ApiError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
                reason = error.message
            except (OSError, NoController) as error:
                reason = str(error)
            api = ApiKey(request.api_key).display_name
            logger.info("the controller has not answered api=%s: %s", api, reason)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)

    async def attempt(self, request: Request[ResponseT]) -> ResponseT:
        """One try; NoController, OSError, or an ApiError of this broker's own controller."""
        controller = self._find_controller()
        if controller is None:  # C
            raise NoController("no controller is known")
        if controller.node_id != self._broker_id:  # B
            return await self._peers.send(controller, request)
        answer: ResponseT = await self.local[request.api_key](request)  # A
        return answer
