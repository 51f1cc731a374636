"""Where a cluster keeps its metadata: a ZooKeeper, or the directory of a broker that is alone."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from broker.log.checkpoints import CorruptCheckpoint, read_meta_properties
from broker.metadata.embedded import METADATA_FILE, EmbeddedStore
from broker.metadata.errors import ConnectionLoss, NoNode, StoreError, StoreInUse
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.json_text import MalformedZnode
from broker.metadata.zookeeper import ZooKeeperSettings, ZooKeeperStore
from kctl.errors import CliError, ExitStatus

# kctl reports what went wrong itself; `-v` shows what else the broker's rooms have to say.
logging.getLogger("broker").addHandler(logging.NullHandler())

ZOOKEEPER_SCHEME = "zookeeper://"
ZOOKEEPER_SESSION_MS = 18_000


class Place:
    """Where metadata is kept: a broker's directory, or a ZooKeeper."""

    def __init__(self, text: str, timeout_s: float) -> None:
        self.text = text
        self._timeout_s = timeout_s
        if "://" in text and not text.startswith(ZOOKEEPER_SCHEME):
            raise CliError(
                f"{text} is neither a directory nor a ZooKeeper",
                f"write a ZooKeeper as {ZOOKEEPER_SCHEME}HOST:PORT/CHROOT",
                ExitStatus.USAGE,
            )

    @property
    def directory(self) -> Path | None:
        """The broker's directory; None for a ZooKeeper."""
        return None if self.text.startswith(ZOOKEEPER_SCHEME) else Path(self.text)

    @asynccontextmanager
    async def opened(self, *, create: bool) -> AsyncIterator[MetadataStore]:
        """The store, open; with `create` one that is not there yet is made."""
        store = await self._open(create)
        try:
            yield store
        except StoreError as error:
            raise self._understood(error) from error
        except MalformedZnode as error:
            raise CliError(f"{self.text}: {error}") from error
        finally:
            await store.close()

    async def _open(self, create: bool) -> MetadataStore:
        try:
            if self.directory is not None:
                return EmbeddedStore.open(self._file(self.directory, create))
            settings = ZooKeeperSettings(
                connect=self.text.removeprefix(ZOOKEEPER_SCHEME).rstrip("/"),
                session_timeout_ms=ZOOKEEPER_SESSION_MS,
                connection_timeout_ms=round(self._timeout_s * 1000),
            )
            return await ZooKeeperStore.open(settings, create_chroot=create)
        except StoreError as error:
            raise self._understood(error) from error

    def _file(self, directory: Path, create: bool) -> Path:
        if not directory.is_dir():
            raise CliError(
                f"there is no directory {directory}",
                f"a ZooKeeper is written {ZOOKEEPER_SCHEME}HOST:PORT/CHROOT",
            )
        path = directory / METADATA_FILE
        if not create and not path.exists():
            raise NoNode(str(path))
        return path

    def _understood(self, error: StoreError) -> CliError:
        match error:
            case StoreInUse():
                return CliError(f"a running broker uses {self.text}", "stop the broker first")
            case ConnectionLoss():
                return CliError(
                    f"no ZooKeeper answers at {self.text}",
                    "check the address; --timeout gives it longer",
                    ExitStatus.TIMED_OUT,
                )
            case NoNode():
                return NothingThere(self.text)
        return CliError(f"{self.text}: {error}")

    def belongs_to(self) -> str | None:
        """The cluster whose partitions are in the directory; None where nothing says."""
        try:
            found = read_meta_properties(self.directory) if self.directory else None
        except CorruptCheckpoint as error:
            raise CliError(str(error), "is this the directory of a broker?") from error
        return found.cluster_id if found else None


def zookeeper_place(connect: str, timeout_s: float) -> Place:
    """A ZooKeeper by its connect string, `host:port,…/chroot`."""
    return Place(ZOOKEEPER_SCHEME + connect.removeprefix(ZOOKEEPER_SCHEME), timeout_s)


class NothingThere(CliError):
    """A place without metadata: wrong to copy from, right to copy to."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"there is no metadata at {place}",
            f"a broker keeps {METADATA_FILE} in the first of its log.dirs; "
            "a ZooKeeper's chroot may differ from the one given",
        )
