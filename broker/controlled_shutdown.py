"""Before a broker stops, it hands over what it leads: the controller elects others in its place.

So clients are without a leader for a moment, and not until the cluster has noticed that a broker is
gone. Where nobody else can lead, waiting does not help: after `controlled.shutdown.max.retries`
tries the broker stops all the same.
"""

import asyncio
import logging

from broker.config import BrokerConfig
from broker.errors import ApiError, ErrorCode
from broker.net.controller_channel import ControllerChannel, NoController
from broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest

logger = logging.getLogger(__name__)


async def hand_over(
    channel: ControllerChannel, request: ControlledShutdownRequest, config: BrokerConfig
) -> bool:
    """Whether this broker leads nothing any more that others could lead."""
    for attempt in range(config.controlled_shutdown_max_retries):
        if attempt:
            await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
        problem = await _attempt(channel, request, config.controller_socket_timeout_ms / 1000)
        if problem is None:
            return True
        logger.info("controlled shutdown: %s", problem)
    logger.warning("stopping without having handed over everything")
    return False


async def _attempt(
    channel: ControllerChannel, request: ControlledShutdownRequest, timeout_s: float
) -> str | None:
    """What is in the way; None if everything is handed over."""
    try:
        async with asyncio.timeout(timeout_s):
            response = await channel.attempt(request)
    except TimeoutError:
        return f"the controller has not answered within {timeout_s:g} s"
    except (OSError, NoController) as error:
        return str(error)
    except ApiError as error:
        return error.message or error.code.name
    if response.error_code:
        return ErrorCode.name_of(response.error_code)
    if response.remaining_partitions:
        return f"{len(response.remaining_partitions)} partitions have no other replica in sync"
    return None
