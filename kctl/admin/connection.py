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
    try:
        return asyncio.run(_ask(_client(session), session.timeout, question))
    except TimeoutError as error:
        raise CliError(
            f"no answer from {session.bootstrap_server} within {session.timeout:g} s",
            "is this a Kafka listener, and one without TLS? --timeout gives it longer",
            ExitStatus.TIMED_OUT,
        ) from error
    except OSError as error:
        raise CliError(
            f"cannot reach the cluster: {error}",
            "check the address, and whether the broker is running",
        ) from error
    except ApiError as error:
        raise CliError(f"the cluster refused: {error} ({error.code.name})") from error


def _client(session: Session) -> Client:
    servers = session.bootstrap_servers()
    try:
        return Client(servers, client_id=CLIENT_ID, request_timeout_s=session.timeout)
    except ValueError as error:
        raise CliError(str(error), "give it as -b HOST:PORT", ExitStatus.USAGE) from error


async def _ask(
    client: Client, timeout_s: float, question: Callable[[Client], Awaitable[Answer]]
) -> Answer:
    async with client, asyncio.timeout(timeout_s):
        return await question(client)
