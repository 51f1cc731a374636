"""A real ZooKeeper for tests: the one inside PySpark's jars, on whatever Java kctl finds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from kctl.dev.zookeeper import ZOO_CFG, zookeeper_command
from tests.support.processes import ServerProcess, free_port


class ZooKeeper:
    """A running ZooKeeper."""

    def __init__(self, address: str) -> None:
        self.address = address

    def fresh_chroot(self) -> str:
        """A connect string with an empty tree of its own, as `zookeeper.connect` takes it."""
        with self._client() as client:
            path = client.create("/test-", sequence=True)
        return f"{self.address}{path}"

    def children(self, path: str) -> list[str]:
        """The names of the nodes below a node, sorted."""
        with self._client() as client:
            return sorted(client.get_children(path))

    @contextmanager
    def _client(self) -> Iterator[KazooClient]:
        client = KazooClient(self.address)
        client.start(timeout=20)
        try:
            yield client
        finally:
            client.stop()
            client.close()


@contextmanager
def running_zookeeper(directory: Path) -> Iterator[ZooKeeper]:
    """Start a ZooKeeper that keeps its data in `directory`; ended with the block."""
    port = free_port()
    config = directory / "zoo.cfg"
    config.write_text(ZOO_CFG.format(directory=directory, port=port))
    command = zookeeper_command(config)
    with ServerProcess(command, directory / "zookeeper.log") as server:
        server.wait_for_port(port)
        yield ZooKeeper(f"127.0.0.1:{port}")
