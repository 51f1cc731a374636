"""Controlled shutdown: before a broker stops, the controller elects other leaders in its place.

So clients are without a leader only for a moment, and not until the broker's session expires. If no
other replica can lead, the broker stops after `controlled.shutdown.max.retries` attempts anyway.
"""

import asyncio
import logging

from broker.config import BrokerConfig
from broker.errors import ApiError, ErrorCode
from broker.net.node_to_controller_channel import NoController, NodeToControllerChannel
from broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest

logger = logging.getLogger(__name__)


async def move_leaders_away(
    channel: NodeToControllerChannel, request: ControlledShutdownRequest, config: BrokerConfig
) -> bool:
    """Return True once this broker leads no partition that another replica could lead."""
    for attempt in range(config.controlled_shutdown_max_retries):
        if attempt:
            await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
        problem = await _attempt(channel, request, config.controller_socket_timeout_ms / 1000)
        if problem is None:
            return True
        logger.info("controlled shutdown attempt failed reason=%s", problem)
    logger.warning("stopping although the controlled shutdown did not succeed")
    return False


async def _attempt(
    channel: NodeToControllerChannel, request: ControlledShutdownRequest, timeout_s: float
) -> str | None:
    """Why the attempt failed; None if it succeeded."""
    try:
        async with asyncio.timeout(timeout_s):
            response = await channel.attempt(request)
    except TimeoutError:
        return f"no response from the controller within {timeout_s:g} s"
    except (OSError, NoController) as error:
        return str(error)
    except ApiError as error:
        return error.message or error.code.name
    if response.error_code:
        return ErrorCode.name_of(response.error_code)
    if response.remaining_partitions:
        return f"{len(response.remaining_partitions)} partitions have no other in-sync replica"
    return None
