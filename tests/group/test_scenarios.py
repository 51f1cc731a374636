"""Runs the scripts tests/scenarios/group-*.txt: commands, `----`, output.

    join NAME [key=value …]      static=ID member=NAME(its member id) version=9 protocols=a,b
                                 session=10000 rebalance=60000 type=consumer topics=t1,t2
    sync NAME [NAME=ASSIGNMENT …]    generation=N to send another one
    heartbeat NAME · leave NAME … · kick static=ID · commit NAME TOPIC-PARTITION=OFFSET …
    advance MS · live NAME MS (with heartbeats) · fail ERROR (the next append) · hold · release (its
    acknowledgement) · restart · move (to another broker) · expire (offsets) · state

NAME is a client; it keeps the member id and generation of its last response. Ids are printed as
NAME:1, NAME:2, … (for static members, of the instance id) in the order in which they were assigned.
`pytest --rewrite` writes the current output into the scripts: read the diff before you commit it.
"""

import asyncio
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.coordinator import LeavingMember
from broker.group.member import JoinResult, SyncResult
from broker.group.offset_manager import Committer
from broker.group.offsets import OffsetAndMetadata
from broker.model import TopicPartition
from tests.group.support import Bench, joining, settle

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("group-*.txt"))
GROUP = "g"


def subscription(topics: str) -> bytes:
    """A consumer's metadata, version 0."""
    names = topics.split(",")
    body = b"".join(struct.pack(">h", len(name)) + name.encode() for name in names)
    return struct.pack(">hi", 0, len(names)) + body + struct.pack(">i", -1)


class Client:
    """The state of one consumer of a script."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.instance_id: str | None = None
        self.generation_id = -1
        self.joins: list[asyncio.Future[JoinResult]] = []
        self.syncs: list[asyncio.Future[SyncResult]] = []


class Script:
    """Runs commands and collects their output."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.config = GroupConfig(**settings)
        self.bench = Bench(self.config)
        self.clients: dict[str, Client] = {}
        self.ids: dict[str, str] = {}
        self.out: list[str] = []

    async def run(self, line: str) -> None:
        command, *words = line.split()
        positional = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        await getattr(self, command)(*positional, **options)
        await settle()
        self.report()

    def report(self) -> None:
        """Print the responses that have arrived."""
        for client in self.clients.values():
            for future in [future for future in client.joins if future.done()]:
                client.joins.remove(future)
                self.say_joined(client, future.result())
            for reply in [reply for reply in client.syncs if reply.done()]:
                client.syncs.remove(reply)
                self.say(client, f"sync {self.show_sync(reply.result())}")

    def say(self, client: Client, text: str) -> None:
        self.out.append(f"{client.name} ← {text}")

    def say_joined(self, client: Client, result: JoinResult) -> None:
        client.member_id = result.member_id
        client.generation_id = result.generation_id
        alias = self.alias(result.member_id)
        if result.error is not ErrorCode.NONE:
            self.say(client, f"join {result.error.name} {alias}".rstrip())
            return
        members = " ".join(self.alias(member.member_id) for member in result.members)
        text = f"join generation {result.generation_id} {result.protocol_name} as {alias}"
        text += f", leader {self.alias(result.leader)}"
        text += f", members {members}" if members else ""
        self.say(client, text + (", skip assignment" if result.skip_assignment else ""))

    def show_sync(self, result: SyncResult) -> str:
        if result.error is not ErrorCode.NONE:
            return result.error.name
        return f"{result.protocol_name} {result.assignment.decode()!r}"

    def alias(self, member_id: str) -> str:
        """The printed form of a member id, which ends in a UUID."""
        if member_id not in self.ids:
            name = member_id[:-37]
            number = 1 + sum(alias.startswith(f"{name}:") for alias in self.ids.values())
            self.ids[member_id] = f"{name}:{number}" if name else member_id
        return self.ids[member_id]

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    # Commands

    async def join(self, name: str, **options: str) -> None:
        client = self.client(name)
        client.instance_id = options.get("static", client.instance_id)
        version = int(options.get("version", 9))
        metadata = subscription(options.get("topics", "t"))
        if "member" in options:
            known = {alias: member_id for member_id, alias in self.ids.items()}
            client.member_id = known.get(options["member"], options["member"].strip("-"))
        request = joining(
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            client_id=name,
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            protocol_type=options.get("type", "consumer"),
            protocols=tuple((p, metadata) for p in options.get("protocols", "range").split(",")),
            require_known_member_id=version >= 4,
            can_skip_assignment=version >= 9,
        )
        client.joins.append(self.bench.coordinator.join(GROUP, request))

    async def sync(self, name: str, **assignment: str) -> None:
        client = self.client(name)
        generation_id = int(assignment.pop("generation", client.generation_id))
        member = (client.member_id, client.instance_id, generation_id)
        given = {self.client(to).member_id: part.encode() for to, part in assignment.items()}
        protocol = (None, None)
        client.syncs.append(self.bench.coordinator.sync(GROUP, member, protocol, given))

    async def heartbeat(self, name: str, **options: str) -> None:
        client = self.client(name)
        generation_id = int(options.get("generation", client.generation_id))
        try:
            code = self.bench.coordinator.heartbeat(
                GROUP, client.member_id, client.instance_id, generation_id
            )
        except ApiError as error:
            code = error.code
        self.say(client, f"heartbeat {code.name}")

    async def leave(self, *names: str) -> None:
        clients = [self.client(name) for name in names]
        leaving = [LeavingMember(client.member_id, client.instance_id) for client in clients]
        errors = self.bench.coordinator.leave(GROUP, leaving)
        for client, error in zip(clients, errors, strict=True):
            self.say(client, f"leave {error.name}")

    async def kick(self, **options: str) -> None:
        (error,) = self.bench.coordinator.leave(GROUP, [LeavingMember("", options["static"])])
        self.out.append(f"kick {error.name}")

    async def commit(self, name: str, **options: str) -> None:
        client = self.client(name)
        generation_id = int(options.pop("generation", client.generation_id))
        now_ms = self.bench.clock.now_ms()
        values = {
            TopicPartition(*self.split(where)): OffsetAndMetadata(int(offset), "", now_ms)
            for where, offset in options.items()
        }
        committer = Committer(client.member_id, client.instance_id, generation_id)
        try:
            errors = await self.bench.offsets.commit(GROUP, committer, values)
        except ApiError as error:
            errors = dict.fromkeys(values, error.code)
        self.say(client, "commit " + " ".join(f"{p} {code.name}" for p, code in errors.items()))

    @staticmethod
    def split(where: str) -> tuple[str, int]:
        topic, _, partition = where.rpartition("-")
        return topic, int(partition)

    async def advance(self, ms: str) -> None:
        await self.bench.advance(int(ms))

    async def live(self, name: str, ms: str) -> None:
        """Advance the clock while the client sends heartbeats, which are not printed."""
        client, step_ms = self.client(name), 1_000_000
        for passed_ms in range(0, int(ms), step_ms):
            await self.bench.advance(min(step_ms, int(ms) - passed_ms))
            self.bench.coordinator.heartbeat(
                GROUP, client.member_id, client.instance_id, client.generation_id
            )

    async def fail(self, code: str) -> None:
        self.bench.topic.fail_next = ErrorCode[code]

    async def hold(self) -> None:
        self.bench.topic.acks.clear()

    async def release(self) -> None:
        self.bench.topic.acks.set()

    async def expire(self) -> None:
        self.out.append(f"expired {await self.bench.offsets.expire()}")

    async def restart(self) -> None:
        """Replace the coordinator by a new one that loads the log; the clock continues."""
        await self.bench.coordinator.stop()
        former, self.bench = self.bench, Bench(self.config, self.bench.topic)
        self.bench.clock.advance(former.clock.now_ms() - self.bench.clock.now_ms())
        await self.bench.start()

    async def move(self) -> None:
        """Unload all partitions."""
        for partition in range(self.bench.topic.num_partitions):
            self.bench.coordinator.unload(partition, 1)

    async def state(self) -> None:
        group = self.bench.coordinator.registry.find(GROUP)
        if group is None:
            self.out.append("no group")
            return
        members = " ".join(
            f"{self.alias(member.member_id)}={member.assignment.decode()!r}"
            for member in group.membership
        )
        offsets = " ".join(f"{p}@{a.value.offset}" for p, a in group.offsets.committed.items())
        text = f"{group.state} generation {group.generation_id} {members} {offsets}"
        self.out.append(re.sub(" +", " ", text).strip())


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """The text (comments and commands) and the commands of each step."""
    for block in text.strip().split("\n\n"):
        head = block.split("\n----")[0]
        commands = [line for line in head.splitlines() if not line.startswith("#")]
        yield head, commands


async def play(text: str) -> str:
    """The script with the current output."""
    played = []
    script: Script | None = None
    for head, commands in steps(text):
        if script is None:
            settings = [line.split()[1:] for line in commands if line.startswith("config")]
            script = Script({k: int(v) for words in settings for k, v in [words[0].split("=")]})
            await script.bench.start()
        script.out = []
        for line in commands:
            if not line.startswith("config"):
                await script.run(line)
        played.append("\n".join([head, "----", *script.out]))
    assert script is not None
    await script.bench.coordinator.stop()
    return "\n\n".join(played) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, request: Any) -> None:
    expected = path.read_text(encoding="utf-8")
    played = asyncio.run(play(expected))
    if request.config.getoption("--rewrite"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == expected


def test_there_are_scenarios() -> None:
    assert SCENARIOS
