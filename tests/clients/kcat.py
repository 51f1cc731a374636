"""kcat, the command line of librdkafka: one process per step, its texts as messages."""

import itertools
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tests.clients.face import (
    ALONE,
    CODECS,
    PLAINLY,
    TIMEOUT_S,
    ClientAdmin,
    Joining,
    Message,
    Sending,
)


class Kcat:
    """Sends and reads texts; administers nothing."""

    name: ClassVar = "kcat"
    codecs: ClassVar[Sequence[str]] = CODECS
    abilities: ClassVar = frozenset({"produce", "consume"})

    def produce(
        self, servers: str, topic: str, messages: Sequence[Message], how: Sending = PLAINLY
    ) -> list[int]:
        """See Client; one process for each run of messages that differ in value and key only."""
        settings = {
            "acks": how.acks,
            "compression.type": how.compression or "none",
            "enable.idempotence": str(how.is_idempotent).lower(),
            "linger.ms": how.linger_ms,
        }
        options = [option for item in settings.items() for option in ("-X", "{}={}".format(*item))]
        for (partition, headers), run in itertools.groupby(
            messages, lambda message: (message.partition, message.headers)
        ):
            named = [f"{key}={value.decode()}" for key, value in headers]
            own = ["-p", str(partition), *(option for text in named for option in ("-H", text))]
            lines = [b"%s|%s" % (each.key or b"", each.value or b"") for each in run]
            _run(
                ["-P", "-b", servers, "-t", topic, "-Z", "-K", "|", *options, *own],
                b"\n".join(lines),
            )
        return []

    def consumer(self, servers: str, how: Joining = ALONE) -> "KcatConsumer":
        """See Client."""
        return KcatConsumer(servers, how)

    def admin(self, servers: str) -> ClientAdmin:
        """It has none."""
        raise NotImplementedError(servers)


class KcatConsumer:
    """See ClientConsumer; every poll reads once from where the last one ended."""

    def __init__(self, servers: str, how: Joining) -> None:
        self._servers = servers
        self._isolation = f"isolation.level={how.isolation_level}"
        self._topic = ""
        self._positions: dict[int, int] = {}

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        self._topic, self._positions = topic, dict(positions)

    def poll(self, timeout_s: float = 0.05) -> list[Message]:
        """See ClientConsumer."""
        return [message for index in self._positions for message in self._read(index)]

    def _read(self, partition: int) -> list[Message]:
        where = ["-t", self._topic, "-p", str(partition), "-o", str(self._positions[partition])]
        options = ["-C", "-b", self._servers, "-e", "-q", "-J", "-X", self._isolation]
        text = _run([*options, *where])
        messages = [_received(json.loads(line)) for line in text.splitlines()]
        if messages:
            self._positions[partition] = messages[-1].offset + 1
        return messages

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """See ClientConsumer."""
        text = _run(["-Q", "-b", self._servers, "-t", f"{topic}:{partition}:{timestamp_ms}"])
        offset = int(text.split()[-1])
        return offset if offset >= 0 else None

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See ClientConsumer."""
        first, end = (self._query(topic, partition, which) for which in (-2, -1))
        return first, end

    def _query(self, topic: str, partition: int, which: int) -> int:
        text = _run(["-Q", "-b", self._servers, "-t", f"{topic}:{partition}:{which}"])
        return int(text.split()[-1])

    def subscribe(self, topic: str) -> None:
        """Not supported: a group would end with the process."""
        raise NotImplementedError(topic)

    def partitions(self) -> set[int]:
        """See ClientConsumer."""
        return set(self._positions)

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """As subscribe."""
        raise NotImplementedError(topic)

    commit_async = commit

    def committed(self, topic: str, partition: int) -> int | None:
        """As subscribe."""
        raise NotImplementedError(topic)

    def close(self) -> None:
        """See ClientConsumer."""


def _run(options: Sequence[str], text: bytes = b"") -> str:
    done = subprocess.run(["kcat", *options], input=text, capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def _received(line: Mapping[str, Any]) -> Message:
    names = line.get("headers", [])
    headers = tuple(
        (name, value.encode()) for name, value in zip(names[::2], names[1::2], strict=True)
    )
    value, key = (
        None if line[each] is None else line[each].encode() for each in ("payload", "key")
    )
    return Message(value, key, line["partition"], headers, line["ts"], line["offset"])
