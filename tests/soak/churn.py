"""Load in which topics, groups, producers and connections come and go, with aiokafka."""

import asyncio
import contextlib
import itertools
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from broker.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.wire import request_frame

STEADY_TOPIC = "steady"
_PAUSE_S = 0.2
_CONNECTIONS = 20
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection."""


class Churn:
    """Runs every kind of churn until cancelled.

    Field `done`: by kind, how many times it was completed.
    Field `errors`: by kind and error, how many times it failed; a step that failed is repeated.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._numbers = itertools.count()
        self.done: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    async def run(self) -> None:
        """All kinds side by side."""
        steps = (self._topic_and_group, self._transaction, self._connections, self._member)
        await asyncio.gather(*(self._repeat(step) for step in steps))

    async def _repeat(self, step: Callable[[str], Awaitable[None]]) -> None:
        kind = step.__name__.strip("_")
        while True:
            try:
                await asyncio.wait_for(step(f"{kind}-{next(self._numbers)}"), 60)
                self.done[kind] += 1
            except (KafkaError, OSError, TimeoutError) as error:
                self.errors[f"{kind}: {type(error).__name__}"] += 1
            await asyncio.sleep(_PAUSE_S)

    async def _topic_and_group(self, name: str) -> None:
        """Create a topic, write to it, read it in a new group, commit, delete the topic."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self._servers)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(name, 2, 3)])
            await self._write(name)
            await self._read(name, group_id=name)
            await admin.delete_topics([name])
        finally:
            await admin.close()

    async def _write(self, topic: str) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self._servers, enable_idempotence=True)
        await producer.start()
        try:
            for number in range(10):
                await producer.send_and_wait(topic, b"%d" % number)
        finally:
            await producer.stop()

    async def _read(self, topic: str, group_id: str) -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=self._servers,
            group_id=group_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            await consumer.getone()
            await consumer.commit()
        finally:
            await consumer.stop()

    async def _member(self, name: str) -> None:
        """A member of the steady group comes, reads and leaves: two rebalances."""
        await self._read(STEADY_TOPIC, group_id="steady")

    async def _transaction(self, name: str) -> None:
        """A new transactional id, one transaction."""
        producer = AIOKafkaProducer(bootstrap_servers=self._servers, transactional_id=name)
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(STEADY_TOPIC, b"transaction")
        finally:
            await producer.stop()

    async def _connections(self, name: str) -> None:
        """Connections that are closed properly, reset, or closed within a request."""
        request = request_frame(ApiVersionsRequest(), 0)
        frame = struct.pack(">i", len(request)) + request
        for number in range(_CONNECTIONS):
            host, _, port = self._servers.split(",")[number % 3].partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(frame if number % 4 else frame[:-3])
            if number % 4:
                await reader.readexactly(4)
            if number % 2:
                connection = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
