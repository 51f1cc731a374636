"""Metadata stores: ZooKeeper, or the log directory of a standalone broker."""

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
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import DEFAULT_TIMEOUT_S

# kctl reports errors itself; `-v` also shows the broker code's log messages.
logging.getLogger("broker").addHandler(logging.NullHandler())

ZOOKEEPER_SCHEME = "zookeeper://"
ZOOKEEPER_SESSION_MS = 18_000
DEFAULT_WAIT_S = 10.0
"""How long to wait for a ZooKeeper unless a timeout was given."""


class Place:
    """A metadata store: a broker's log directory, or a ZooKeeper."""

    def __init__(self, text: str, timeout_s: float) -> None:
        self.text = text
        # A command that waits for a ZooKeeper that is not there should not take half a minute.
        self._timeout_s = DEFAULT_WAIT_S if timeout_s == DEFAULT_TIMEOUT_S else timeout_s
        if "://" in text and not text.startswith(ZOOKEEPER_SCHEME):
            raise CliError(
                f"{text} is neither a directory nor a ZooKeeper address",
                f"specify a ZooKeeper as {ZOOKEEPER_SCHEME}HOST:PORT/CHROOT",
                ExitStatus.USAGE,
            )

    @property
    def directory(self) -> Path | None:
        """The broker's directory; None for a ZooKeeper."""
        return None if self.text.startswith(ZOOKEEPER_SCHEME) else Path(self.text)

    @asynccontextmanager
    async def opened(self, *, create: bool) -> AsyncIterator[MetadataStore]:
        """The opened store; with `create` a missing one is created."""
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
            wait_ms = round(self._timeout_s * 1000)
            settings = ZooKeeperSettings(
                connect=self.text.removeprefix(ZOOKEEPER_SCHEME).rstrip("/"),
                # kazoo waits for a silent server as long as its session would last, also on close.
                session_timeout_ms=min(ZOOKEEPER_SESSION_MS, max(1000, wait_ms)),
                connection_timeout_ms=wait_ms,
            )
            return await ZooKeeperStore.open(settings, create_chroot=create)
        except StoreError as error:
            raise self._understood(error) from error
        except ValueError as error:  # of the connect string
            raise CliError(
                f"invalid ZooKeeper address {self.text!r}: {error}",
                f"specify it as {ZOOKEEPER_SCHEME}HOST:PORT/CHROOT",
                ExitStatus.USAGE,
            ) from error

    def _file(self, directory: Path, create: bool) -> Path:
        if not directory.is_dir():
            raise CliError(
                f"no such directory: {directory}",
                f"specify a ZooKeeper as {ZOOKEEPER_SCHEME}HOST:PORT/CHROOT",
            )
        path = directory / METADATA_FILE
        if not create and not path.exists():
            raise NoNode(str(path))
        return path

    def _understood(self, error: StoreError) -> CliError:
        match error:
            case StoreInUse():
                return CliError(
                    f"{self.text} is in use by a running broker", "stop the broker first"
                )
            case ConnectionLoss():
                return CliError(
                    f"no answer from ZooKeeper at {self.text} within {self._timeout_s:g} s",
                    "check the address; --timeout SECONDS waits longer",
                    ExitStatus.TIMED_OUT,
                )
            case NoNode():
                return NothingThere(self.text)
        return CliError(f"{self.text}: {error}")

    def belongs_to(self) -> str | None:
        """The cluster id in the directory's meta.properties; None without that file."""
        try:
            found = read_meta_properties(self.directory) if self.directory else None
        except CorruptCheckpoint as error:
            raise CliError(str(error), "check that it is a broker's log directory") from error
        return found.cluster_id if found else None


def zookeeper_place(connect: str, timeout_s: float) -> Place:
    """A ZooKeeper by its connect string, `host:port,…/chroot`."""
    return Place(ZOOKEEPER_SCHEME + connect.removeprefix(ZOOKEEPER_SCHEME), timeout_s)


class NothingThere(CliError):
    """The store has no metadata: an error for a source, required for a target."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"no metadata found at {place}",
            f"a broker stores {METADATA_FILE} in the first of its log.dirs; for ZooKeeper, check "
            "the chroot",
        )
