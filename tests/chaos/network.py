"""The network between brokers, ZooKeeper and clients, and how it fails; see `switch`."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.chaos.switch import HERE, NAMESPACES, READY

ZOOKEEPER = "zookeeper"
BROKERS = ("broker-1", "broker-2", "broker-3")
HOSTS = {HERE: "10.99.0.100", ZOOKEEPER: "10.99.0.50"} | {
    name: f"10.99.0.{number}" for number, name in enumerate(BROKERS, 1)
}


@dataclass
class Network:
    """A running network; every method takes effect before it returns."""

    _switch: subprocess.Popen[str]
    _cuts: set[tuple[str, str]] = field(default_factory=set)
    _loss: float = 0.0
    _delay_s: dict[str, float] = field(default_factory=dict)

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Drop packets from the first to the second host of each pair."""
        self._cuts |= set(pairs)
        self._apply()

    def lose(self, share: float) -> None:
        """Drop this share of all packets."""
        self._loss = share
        self._apply()

    def slow_down(self, host: str, delay_s: float) -> None:
        """Delay packets to and from a host."""
        self._delay_s[host] = delay_s
        self._apply()

    def heal(self) -> None:
        """Let all packets pass."""
        self._cuts.clear()
        self._loss = 0.0
        self._delay_s.clear()
        self._apply()

    def _apply(self) -> None:
        rules = {"cuts": sorted(self._cuts), "loss": self._loss, "delay_s": self._delay_s}
        assert self._switch.stdin is not None
        assert self._switch.stdout is not None
        print(json.dumps(rules), file=self._switch.stdin, flush=True)
        assert self._switch.stdout.readline() == "ok\n"


def in_host(name: str, command: list[str]) -> list[str]:
    """The command line that runs a command on a host; its process id is the command's."""
    return ["nsenter", f"--net={NAMESPACES / name}", *command]


@contextmanager
def running_network() -> Iterator[Network]:
    """Build the network; needs the namespaces of `namespaces`."""
    hosts = [f"{name}={address}" for name, address in HOSTS.items()]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.switch", *hosts],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as switch:
        try:
            assert switch.stdout is not None
            assert switch.stdout.readline().strip() == READY
            yield Network(switch)
        finally:
            switch.kill()
