"""What an authorizer with 1,000 ACLs adds to a produce request.

Counted in opcodes of the interpreter, not timed: the result is the same on a loaded machine.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from bench.report import Comparison
from broker.config import BrokerConfig, parse_config
from broker.config.support import ACL_AUTHORIZER
from broker.net.connection import Peer
from broker.net.poller import BrokerLoop
from broker.security.acls import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from broker.server import Server
from tests.api.requests import produce_request
from tests.log.support import batch
from tests.support.wire import request_frame

GOAL = 1.05
NUM_ACLS = 1_000
_PEER = Peer("127.0.0.1", 50_000, "PLAINTEXT")


def run() -> Iterator[Comparison]:
    """One produce of one batch, with and without the authorizer."""
    without, with_acls = (_count(setting) for setting in ("", ACL_AUTHORIZER))
    yield Comparison(
        f"produce, {NUM_ACLS:,} ACLs", with_acls, without, "no authorizer", "opcodes", GOAL
    )


def _count(authorizer: str) -> int:
    with tempfile.TemporaryDirectory() as directory:
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(Path(directory) / "data"),
            "authorizer.class.name": authorizer,
        }
        with asyncio.Runner(loop_factory=BrokerLoop) as runner:
            return runner.run(_count_produce(parse_config(settings)))


async def _count_produce(config: BrokerConfig) -> int:
    server = Server(config)
    await server.start()
    try:
        return await _produce(server)
    finally:
        await server.stop()


async def _produce(server: Server) -> int:
    services = server._services
    if services.authorizer is not None:
        acl = AccessControlEntry("User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW)
        for number in range(NUM_ACLS):
            topic = ResourcePattern(ResourceType.TOPIC, f"topic-{number}")
            services.authorizer.update(topic, [acl])
    await services.auto_creation.auto_create("topic-500")
    frame = memoryview(request_frame(produce_request("topic-500", batch("x"), acks=1), 9))
    for _ in range(10):
        server._dispatcher(frame, _PEER)
    return _opcodes(server, frame)


def _opcodes(server: Server, frame: memoryview) -> int:
    count = 0

    def trace(called: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        called.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        server._dispatcher(frame, _PEER)
    finally:
        sys.settrace(None)
    return count
