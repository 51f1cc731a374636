"""A network of hosts whose packets all pass through this process, which loses and delays them.

`python -m tests.chaos.switch NAME=ADDRESS …` creates, for every host but `HERE`, a network
namespace with a TUN device and the address; `HERE` is the namespace in which the switch itself
runs. Each line of its input is a JSON object that replaces all rules:

    {"cuts": [["broker-1", "broker-2"]],     packets from broker-1 to broker-2 are dropped
     "loss": 0.05,                           of all other packets, this share is dropped
     "delay_s": {"broker-3": 0.2}}           packets to and from broker-3 are late

The kernel's TCP sees real packet loss: it retransmits, backs off, and keeps connections half open.
"""

import ctypes
import fcntl
import heapq
import json
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = "clients"
NAMESPACES = Path("/run/netns")
READY = "the network is up"
_DEVICE = "kctl0"
_PREFIX_LENGTH = 24
_MTU = 9000
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_MAX_PACKET = 65_536
_IPV4 = 4
_DESTINATION = slice(16, 20)
"""The target address in an IPv4 header."""


@dataclass
class Rules:
    """What happens to packets; all of them pass at first."""

    cuts: set[tuple[str, str]] = field(default_factory=set)
    loss: float = 0.0
    delay_s: dict[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, line: str) -> "Rules":
        """Rules from a line of input."""
        found = json.loads(line)
        cuts = {(source, target) for source, target in found["cuts"]}
        return cls(cuts, found["loss"], found["delay_s"])

    def delay_of(self, source: str, target: str) -> float | None:
        """Seconds after which a packet arrives; None if it is lost."""
        if (source, target) in self.cuts or random.random() < self.loss:
            return None
        return self.delay_s.get(source, 0.0) + self.delay_s.get(target, 0.0)


class Switch:
    """Forwards packets between the TUN devices of all hosts."""

    def __init__(self, hosts: dict[str, str]) -> None:
        self._devices = {name: _open_device(name, address) for name, address in hosts.items()}
        self._names = {socket.inet_aton(address): name for name, address in hosts.items()}
        self._rules = Rules()
        self._delayed: list[tuple[float, int, int, bytes]] = []
        """A heap of packets: when to deliver, a serial number, the device, the packet."""
        self._serial = 0
        self._selector = selectors.DefaultSelector()
        for name, device in self._devices.items():
            self._selector.register(device, selectors.EVENT_READ, name)
        self._selector.register(sys.stdin, selectors.EVENT_READ, None)

    def run(self) -> None:
        """Forward until the input ends."""
        while True:
            for key, _ in self._selector.select(self._deliver_delayed()):
                if key.data is not None:
                    self._receive(key.fd, key.data)
                elif line := sys.stdin.readline():
                    self._rules = Rules.parse(line)
                    print("ok", flush=True)
                else:
                    return

    def _receive(self, device: int, source: str) -> None:
        try:
            while True:
                packet = os.read(device, _MAX_PACKET)
                target = self._names.get(packet[_DESTINATION])
                if packet[0] >> 4 == _IPV4 and target is not None:
                    self._forward(packet, source, target)
        except BlockingIOError:
            return

    def _forward(self, packet: bytes, source: str, target: str) -> None:
        delay_s = self._rules.delay_of(source, target)
        if delay_s is None:
            return
        if delay_s:
            self._serial += 1
            due = time.monotonic() + delay_s
            heapq.heappush(self._delayed, (due, self._serial, self._devices[target], packet))
        else:
            _write(self._devices[target], packet)

    def _deliver_delayed(self) -> float | None:
        """Deliver what is due; the seconds until more is, or None."""
        while self._delayed:
            wait_s = self._delayed[0][0] - time.monotonic()
            if wait_s > 0:
                return wait_s
            _, _, device, packet = heapq.heappop(self._delayed)
            _write(device, packet)
        return None


def _write(device: int, packet: bytes) -> None:
    try:
        os.write(device, packet)
    except OSError:  # the host's queue is full: packets may be lost
        return


def _open_device(name: str, address: str) -> int:
    """The TUN device of a host, in its namespace; file descriptors belong to no namespace."""
    opened: list[int] = []
    if name != HERE:
        _ip("netns", "add", name)

    def work() -> None:
        if name != HERE:
            _enter(NAMESPACES / name)
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(
            device, _TUNSETIFF, struct.pack("16sH14x", _DEVICE.encode(), _IFF_TUN | _IFF_NO_PI)
        )
        _ip("link", "set", "lo", "up")
        _ip("addr", "add", f"{address}/{_PREFIX_LENGTH}", "dev", _DEVICE)
        _ip("link", "set", _DEVICE, "mtu", str(_MTU), "up")
        opened.append(device)

    thread = threading.Thread(target=work)  # a namespace is a property of a thread
    thread.start()
    thread.join()
    return opened[0]


def _enter(namespace: Path) -> None:
    descriptor = os.open(namespace, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    finally:
        os.close(descriptor)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def main() -> None:
    """Build the network and forward packets."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    NAMESPACES.mkdir()
    switch = Switch(dict(argument.split("=") for argument in sys.argv[1:]))
    print(READY, flush=True)
    switch.run()


if __name__ == "__main__":
    main()
