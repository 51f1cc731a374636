"""Sends fuzzed frames to a broker and watches what they do to it and to an innocent client."""

import contextlib
import random
import re
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import encode
from broker.protocol.headers import RequestHeader, request_header_version
from broker.protocol.messages import request_class
from broker.protocol.messages.metadata import MetadataRequest
from tests.fuzz.generate import Generator
from tests.fuzz.mutate import mutate
from tests.support.broker import RunningBroker

FRAMES_PER_SENDER = 50
READ_TIMEOUT_S = 0.02
LEFT_OUT = frozenset({ApiKey.CONTROLLED_SHUTDOWN})
"""APIs that would stop the broker under test: without an authorizer they take effect."""


@dataclass
class Report:
    """What was seen; `problems` is empty if the broker held."""

    frames: int = 0
    worst_wait_s: float = 0.0
    innocent_requests: int = 0
    start_mb: float = 0.0
    peak_mb: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.frames:,} frames; {self.innocent_requests:,} innocent requests, worst wait "
            f"{self.worst_wait_s * 1000:.0f} ms; memory {self.start_mb:.0f} MB at start, "
            f"{self.peak_mb:.0f} MB at most"
        )


@dataclass(frozen=True)
class Limits:
    """What the broker may not exceed."""

    wait_s: float
    memory_mb: float


def fuzz(
    broker: RunningBroker, frames: int, seed: int, limits: Limits, connections: int = 1
) -> Report:
    """Send `frames` frames, most of them damaged; stops when the broker does not answer.

    With several connections at a time the seed determines the frames, but not their order.
    """
    rng = random.Random(seed)
    requests = [request_class(key) for key in sorted(served_apis(broker)) if key not in LEFT_OUT]
    generator = Generator(rng, requests)
    pid = broker.server.process.pid
    report = Report(start_mb=resident_mb(pid))
    innocent = InnocentClient(broker.bootstrap_servers)
    innocent.start()
    sending: deque[Future[None]] = deque()
    with ThreadPoolExecutor(connections) as senders:
        while report.frames < frames and innocent.is_alive():
            count = min(FRAMES_PER_SENDER, frames - report.frames)
            made = [_frame(generator, rng) for _ in range(count)]
            sending.append(senders.submit(_send, broker.bootstrap_servers, made))
            if len(sending) > connections:
                sending.popleft().result()
            report.frames += count
            report.peak_mb = max(report.peak_mb, resident_mb(pid))
    innocent.stop()
    report.innocent_requests, report.worst_wait_s = innocent.requests, innocent.worst_wait_s
    _check(broker, report, innocent, limits)
    return report


def _frame(generator: Generator, rng: random.Random) -> bytes:
    frame = generator.frame()
    return frame if rng.random() < 0.2 else mutate(frame, rng)


def _check(
    broker: RunningBroker, report: Report, innocent: "InnocentClient", limits: Limits
) -> None:
    if broker.server.process.poll() is not None:
        report.problems.append(f"the broker ended with {broker.server.process.returncode}")
    if report.peak_mb > limits.memory_mb:
        report.problems.append(f"memory {report.peak_mb:.0f} MB")
    if innocent.worst_wait_s > limits.wait_s:
        report.problems.append(f"an innocent client waited {innocent.worst_wait_s:.1f} s")
    if innocent.failure is not None:
        report.problems.append(f"an innocent client failed: {innocent.failure!r}")
    report.problems += sorted(tracebacks(broker.output()))


def tracebacks(log: str) -> set[str]:
    """The different tracebacks in a log, each as its last call and its exception."""
    found = set()
    call, is_inside = "", False
    for line in log.splitlines():
        text = line.strip()
        if text.startswith("Traceback"):
            is_inside = True
        elif is_inside and text.startswith("File "):
            call = text
        elif is_inside and (line[:1] not in (" ", "[") or _EXCEPTION.match(text)):
            found.add(f"traceback: {text[:200]} at {call}")
            is_inside = False
    return found


_EXCEPTION = re.compile(r"[\w.]+(Error|Exception|Full|Expired|Loss)\b.*")


def _send(address: str, frames: list[bytes]) -> None:
    """Send frames one after the other; each connection is used as long as it gives responses.

    A frame without a response may be answered much later, and the broker reads no further before:
    the next frame goes to a new connection.
    """
    rest = iter(frames)
    while (frame := next(rest, None)) is not None:
        host, port = address.rsplit(":", 1)
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host, int(port)), timeout=10) as connection,
        ):
            connection.settimeout(READ_TIMEOUT_S)
            connection.sendall(len(frame).to_bytes(4, "big") + frame)
            while connection.recv(1 << 16) and (frame := next(rest, None)) is not None:
                connection.sendall(len(frame).to_bytes(4, "big") + frame)


def served_apis(broker: RunningBroker) -> set[ApiKey]:
    """The APIs that the broker advertises."""
    from broker.api.table import TABLE

    return {ApiKey(key) for key in TABLE}


def resident_mb(pid: int) -> float:
    """Resident memory of a process; 0 if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


class InnocentClient(threading.Thread):
    """Asks for metadata again and again, and notes the longest wait."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._is_over = threading.Event()
        self.requests = 0
        self.worst_wait_s = 0.0
        self.failure: OSError | None = None

    def run(self) -> None:
        """Ask every 20 ms."""
        version = 9
        header = RequestHeader(
            request_api_key=ApiKey.METADATA, request_api_version=version, correlation_id=1
        )
        body = encode(header, request_header_version(ApiKey.METADATA, version))
        body += encode(MetadataRequest(topics=[]), version)
        frame = len(body).to_bytes(4, "big") + body
        host, port = self._address.rsplit(":", 1)
        try:
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                while not self._is_over.wait(0.02):
                    began = time.monotonic()
                    connection.sendall(frame)
                    size = int.from_bytes(_receive(connection, 4), "big")
                    _receive(connection, size)
                    self.worst_wait_s = max(self.worst_wait_s, time.monotonic() - began)
                    self.requests += 1
        except OSError as error:
            self.failure = error

    def stop(self) -> None:
        """End after the current request."""
        self._is_over.set()
        self.join(60)


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return data
