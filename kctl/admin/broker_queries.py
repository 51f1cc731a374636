"""Queries to several brokers at once, each with its own timeout; partial answers.

One broker that hangs, or is down but still registered, must not hide what the others know. A query
that fans out runs `each_broker`: all brokers are queried in parallel, and one that does not answer
in time is left out of the result and recorded. `ask(..., partial=True)` reports the recorded
brokers at the end of the command, which then exits with status 4. Without `partial`, for changes
and for plans that need every broker, the first failure raises `BrokerUnavailable`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from broker.net.client import Client
from broker.net.failures import SecurityFailed
from broker.protocol.schema import Request, ResponseT
from kctl.model.cluster import BrokerFailure

Answer = TypeVar("Answer")
Work = TypeVar("Work")


@dataclass
class QueryScope:
    """How the queries of one `ask` treat brokers that do not answer."""

    timeout_s: float
    """For each broker."""
    is_partial: bool = False
    failures: dict[int, BrokerFailure] = field(default_factory=dict)
    """Brokers that did not answer. *Invariant*: they are not queried again in this scope."""
    waiting: dict[int, Callable[[], BrokerFailure]] = field(default_factory=dict)
    """Brokers whose answer is awaited, or was when the query was cancelled."""


SCOPE: ContextVar[QueryScope] = ContextVar("SCOPE")
"""Set by `ask`; tasks inherit it."""


class BrokerUnavailable(Exception):
    """A broker did not answer, and the query needs all of them."""

    def __init__(self, failure: BrokerFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


async def each_broker(
    client: Client,
    work: Mapping[int, Work],
    query: Callable[[int, Work], Awaitable[Answer]],
) -> dict[int, Answer]:
    """Run `query(broker_id, work)` for every broker at once; answers by broker id.

    In a partial query, brokers that did not answer are missing from the result.
    """
    scope = SCOPE.get(None) or QueryScope(client.request_timeout_s)
    answers: dict[int, Answer] = {}

    async def query_one(broker_id: int, work: Work) -> None:
        if broker_id in scope.failures:
            return
        reason = f"did not answer within {scope.timeout_s:g} s"
        silent = scope.waiting[broker_id] = partial(_failure, client, broker_id, reason)
        try:
            async with asyncio.timeout(scope.timeout_s):
                answers[broker_id] = await query(broker_id, work)
        except SecurityFailed:
            raise
        except TimeoutError:
            scope.failures[broker_id] = silent()
        except OSError as error:
            reason = _unreachable(client, broker_id, error)
            scope.failures[broker_id] = _failure(client, broker_id, reason)
        scope.waiting.pop(broker_id, None)

    await asyncio.gather(*(query_one(*item) for item in work.items()))
    if scope.failures and not scope.is_partial:
        raise BrokerUnavailable(next(iter(scope.failures.values())))
    return {broker_id: answers[broker_id] for broker_id in work if broker_id in answers}


async def every_broker(
    client: Client, query: Callable[[int], Awaitable[Answer]]
) -> dict[int, Answer]:
    """`each_broker` for all brokers of the cluster, in the order of their ids."""
    await client.refresh_metadata()
    work = dict.fromkeys(sorted(client.cluster.nodes))
    return await each_broker(client, work, lambda broker_id, _: query(broker_id))


async def change(
    client: Client,
    broker_id: int,
    send: Callable[[], Awaitable[Answer]],
    others: Collection[int] = (),
) -> Answer:
    """The answer to a change, which may take as long as the whole query.

    If it takes long, the broker is probed on another connection: BrokerUnavailable as soon as it
    does not answer there. A hung broker is thus noticed in seconds, and a busy one is waited for.
    The brokers that it may be waiting for, `others`, are probed too.
    """
    scope = SCOPE.get(None) or QueryScope(client.request_timeout_s)
    started_s = asyncio.get_running_loop().time()
    sending = asyncio.ensure_future(send())
    reason = f"did not answer within {scope.timeout_s:g} s"
    scope.waiting[broker_id] = partial(_failure, client, broker_id, reason)
    try:
        while not (await asyncio.wait({sending}, timeout=scope.timeout_s / 3))[0]:
            await _probe_all(client, [broker_id, *others], scope.timeout_s / 2, started_s)
        answer = await sending
        scope.waiting.pop(broker_id, None)
        return answer
    except SecurityFailed:
        raise
    except (TimeoutError, OSError) as error:
        raise BrokerUnavailable(_silence(client, broker_id, error, started_s)) from error
    finally:
        sending.cancel()


async def _probe_all(
    client: Client, brokers: Sequence[int], timeout_s: float, started_s: float
) -> None:
    """BrokerUnavailable with the first of these brokers that does not answer."""

    async def failure(broker_id: int) -> BrokerFailure | None:
        try:
            async with asyncio.timeout(timeout_s):
                await client.probe(broker_id)
        except SecurityFailed:
            raise
        except (TimeoutError, OSError, KeyError) as error:
            return _silence(client, broker_id, error, started_s)
        return None

    found = await asyncio.gather(*map(failure, brokers))
    if failures := [one for one in found if one]:
        raise BrokerUnavailable(failures[0])


def _silence(client: Client, broker_id: int, error: Exception, started_s: float) -> BrokerFailure:
    taken_s = asyncio.get_running_loop().time() - started_s
    reason = f"did not answer within {taken_s:.1f} s"
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        reason = _unreachable(client, broker_id, error)
    return _failure(client, broker_id, reason)


async def change_by_controller(client: Client, request: Request[ResponseT]) -> ResponseT:
    """The controller's answer to a change.

    The controller waits for the brokers that the change affects. If it takes long, all brokers are
    probed: BrokerUnavailable for one that does not answer, instead of waiting for it.
    """
    await client.refresh_metadata()
    controller_id = client.cluster.controller_id
    if controller_id < 0:
        return await client.send_to_controller(request)  # waits for one to be elected
    others = sorted(client.cluster.nodes.keys() - {controller_id})
    return await change(client, controller_id, lambda: client.send_to_controller(request), others)


def request_timeout_ms(timeout_s: float) -> int:
    """The `timeout_ms` of a request: less than our own timeout, so that its answer arrives."""
    return round(timeout_s * 900)


async def from_controller(client: Client, request: Request[ResponseT]) -> ResponseT | None:
    """The controller's answer; None if it did not answer in a partial query."""
    await client.refresh_metadata()
    answers = await each_broker(
        client,
        {client.cluster.controller_id: request},
        lambda _, request: client.send_to_controller(request),
    )
    return next(iter(answers.values()), None)


def unavailable_controller(client: Client) -> BrokerUnavailable:
    """The failure for queries that need the controller, after `from_controller` gave None."""
    controller_id = client.cluster.controller_id
    known = SCOPE.get().failures.get(controller_id)
    return BrokerUnavailable(known or _failure(client, controller_id, "did not answer"))


def _unreachable(client: Client, broker_id: int, error: OSError) -> str:
    is_known = broker_id in client.cluster.nodes
    return f"is unreachable: {error}" if is_known else "is not in the cluster"


def _failure(client: Client, broker_id: int, reason: str) -> BrokerFailure:
    node = client.cluster.nodes.get(broker_id)
    address = f"{node.host}:{node.port}" if node else None
    # The client's messages begin with the address, which is already named.
    return BrokerFailure(broker_id, address, reason.replace(f"{node}: ", ""))
