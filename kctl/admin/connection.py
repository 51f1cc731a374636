"""One question to a cluster: it is answered, or it fails in words."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from broker.errors import ApiError
from broker.net.client import Client
from kctl import __version__
from kctl.errors import CliError, ExitStatus
from kctl.options import Session

Answer = TypeVar("Answer")

CLIENT_ID = f"kctl/{__version__}"
"""What brokers log and count requests under."""


def ask(session: Session, question: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """Run `question` on a client of the session's cluster; CliError if it cannot be answered."""
    return asyncio.run(_ask(session, session.bootstrap_servers(), question))


async def _ask(
    session: Session, servers: str, question: Callable[[Client], Awaitable[Answer]]
) -> Answer:
    try:
        async with asyncio.timeout(session.timeout), Client(servers, client_id=CLIENT_ID) as client:
            return await question(client)
    except TimeoutError as error:
        raise CliError(
            f"no answer from {servers} within {session.timeout:g} s",
            "is this a Kafka listener, and one without TLS? --timeout gives it longer",
            ExitStatus.TIMED_OUT,
        ) from error
    except OSError as error:
        raise CliError(
            f"cannot reach {servers}: {error.strerror or error}",
            "check the address, and whether the broker is running",
        ) from error
    except ApiError as error:
        raise CliError(f"the cluster refused: {error} ({error.code.name})") from error
