"""Many consumers in one group, by raw requests: they join, and again when one more joins."""

import asyncio
import contextlib
from dataclasses import dataclass

from broker.errors import ErrorCode
from broker.net.client import Client
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "rebalancing"
TIMEOUT_S = 300
METADATA = bytes(40)
"""As large as a subscription to one topic."""
HEARTBEAT_S = 3.0
"""Kafka's default heartbeat.interval.ms."""


@dataclass
class Member:
    """One consumer. The leader assigns to each member the number of members."""

    client: Client
    member_id: str = ""
    generation_id: int = -1
    assignment: bytes = b""

    async def join(self) -> None:
        """Join, and again until a generation has begun."""
        while True:
            joined = await self._join()
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
                continue
            assert not joined.error_code, joined
            self.member_id, self.generation_id = joined.member_id, joined.generation_id
            if await self._sync(joined):
                return

    async def _join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=TIMEOUT_S * 1000,
            rebalance_timeout_ms=TIMEOUT_S * 1000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
        )
        return await self.client.send_to_coordinator(GROUP, request)

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        """Get an assignment; False if the next rebalance has begun meanwhile."""
        size = len(joined.members).to_bytes(4, "big")
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member.member_id, assignment=size)
                for member in joined.members
            ],
        )
        synced = await self.client.send(request)
        if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        assert not synced.error_code, synced
        self.assignment = synced.assignment
        return True

    async def run(self, size: int) -> None:
        """Stay a member, as a consumer does, until the group has `size` members."""
        if self.generation_id < 0:
            await self.join()
        while int.from_bytes(self.assignment, "big") < size:
            await asyncio.sleep(HEARTBEAT_S)
            request = HeartbeatRequest(
                group_id=GROUP, generation_id=self.generation_id, member_id=self.member_id
            )
            beat = await self.client.send(request)
            if beat.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                await self.join()
            else:
                assert not beat.error_code, beat


async def rebalance(address: str, count: int) -> None:
    """`count` consumers join at once; when all are in one generation, another one joins."""
    async with contextlib.AsyncExitStack() as stack:
        members = []
        for _ in range(count + 1):
            client = Client(address, request_timeout_s=TIMEOUT_S, connect_timeout_s=TIMEOUT_S)
            members.append(Member(await stack.enter_async_context(client)))
        await asyncio.gather(*(member.run(count) for member in members[:count]))
        await asyncio.gather(*(member.run(count + 1) for member in members))
