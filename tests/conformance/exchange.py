"""The same conversation with two brokers, and the parts of responses that must be equal.

An exchange is a generator: it yields requests and receives responses, so that a later request can
use what an earlier one brought (a topic id). Requests of the API under test go out in the version
under test, all others in the highest.
"""

import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from broker.model import Uuid
from broker.protocol.json_view import to_json
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.schema import Request, Response
from tests.support.wire import WireClient

Talk = Generator["Request[Any] | Until", Any, None]
Build = Callable[[str, int], Talk]
"""Given a prefix for the names of topics and the version under test."""


@dataclass(frozen=True)
class Until:
    """Repeat a request until the response is as expected: metadata is updated asynchronously."""

    request: Request[Any]
    is_wanted: Callable[[Any], bool]
    timeout_s: float = 20


@dataclass(frozen=True)
class Exchange:
    """A conversation about one API, which runs in every version of it."""

    api: type[Request[Any]]
    build: Build

    @property
    def name(self) -> str:
        """The name of the function that builds it."""
        return self.build.__name__

    def cases(self) -> Iterable[tuple["Exchange", int]]:
        """The exchange with every version."""
        lowest, highest = self.api.versions
        return ((self, version) for version in range(lowest, highest + 1))


def carried(api: type[Request[Any]], version: int, **fields: Any) -> Any:
    """A request with only those fields that the version has."""
    known = {field.name: field for field in api.fields}
    return api(**{name: v for name, v in fields.items() if known[name].in_version(version)})


_SETUP = {CreateTopicsRequest, InitProducerIdRequest, ProduceRequest}
"""Requests with exchanges of their own; elsewhere their responses are not compared."""


def talk(exchange: Exchange, version: int, address: str) -> list[Any]:
    """Run the conversation with a broker; returns comparable responses."""
    prefix = f"{exchange.name}-v{version}-".replace("_", "-")
    conversation = exchange.build(prefix, version)
    answers = []
    with WireClient(address) as wire:
        step = next(conversation, None)
        while step is not None:
            request = step.request if isinstance(step, Until) else step
            used = version if type(request) is exchange.api else type(request).versions[1]
            answer = _ask(wire, step, used)
            if type(request) is exchange.api or type(request) not in _SETUP:
                answers.append(comparable(answer, used, prefix))
            try:
                step = conversation.send(answer)
            except StopIteration:
                break
    return answers


def _ask(wire: WireClient, step: Request[Any] | Until, version: int) -> Response:
    if not isinstance(step, Until):
        response: Response = wire.ask(step, version)
        return response
    deadline = time.monotonic() + step.timeout_s
    answer: Response = wire.ask(step.request, version)
    while not step.is_wanted(answer) and time.monotonic() < deadline:
        time.sleep(0.02)
        answer = wire.ask(step.request, version)
    return answer


def comparable(answer: Response, version: int, prefix: str) -> Any:
    """A response without what differs between brokers, with sorted lists.

    Kafka builds most lists from hash maps, so their order is arbitrary. Topics of other
    conversations (where a request asks for all) are left out.
    """
    return {type(answer).__name__: _walk(to_json(answer, version), prefix)}


_OWN = {
    "clusterId": str,
    "host": str,
    "port": int,
    "logDir": str,
    "totalBytes": int,
    "usableBytes": int,
}
"""Fields that differ between brokers: only whether they are set is compared."""


def _walk(value: Any, prefix: str) -> Any:
    if isinstance(value, list):
        kept = [_walk(item, prefix) for item in value if not _is_foreign(item, prefix)]
        return sorted(kept, key=repr) if kept and isinstance(kept[0], dict) else kept
    if not isinstance(value, dict):
        return value
    return {key: _field(key, field, prefix) for key, field in value.items()}


def _field(key: str, value: Any, prefix: str) -> Any:
    if key in _OWN and isinstance(value, _OWN[key]) and value and value != -1:
        return f"<{key}>"
    if key == "topicId" and value != str(Uuid.ZERO):
        return "<id>"
    return _walk(value, prefix)


def _is_foreign(item: Any, prefix: str) -> bool:
    """Whether it is a topic of another conversation, or an internal one."""
    if not isinstance(item, dict) or not (item.get("partitions") or item.get("partitionResult")):
        return False
    name = item.get("name", item.get("topic"))
    return isinstance(name, str) and not name.startswith(prefix)
