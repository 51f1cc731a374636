"""`kctl metadata copy`: a cluster's metadata from one store to another.

What a Kafka needs to start on it is copied: topics with their ids, assignments and partition
states, configs, ACLs, tokens, features, producer ids, offsets in znodes, the cluster id and the
controller epoch, so that epochs go on growing. What belongs to running brokers stays: their
registrations and all other ephemeral nodes, the controller's seat, and the notes of changes, which
only brokers that were there before have not yet seen.

The target must have nothing of Kafka's in it. The cluster id goes in last: should a copy in batches
break off, no broker that belongs to the cluster starts on what is there.
"""

import logging
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from broker.log.checkpoints import CorruptCheckpoint, read_meta_properties
from broker.metadata.embedded import METADATA_FILE, EmbeddedStore
from broker.metadata.errors import ConnectionLoss, NoNode, StoreError, StoreInUse
from broker.metadata.recursive import BranchNode, multi_in_batches, read_branch
from broker.metadata.store import Create, MetadataStore, Operation, SetData, parent_of
from broker.metadata.znodes.brokers import BROKER_IDS_PATH, BROKER_SEQUENCE_ID_PATH
from broker.metadata.znodes.cluster import CLUSTER_PATH, ClusterIdZnode
from broker.metadata.znodes.controller import ControllerZnode
from broker.metadata.znodes.json_text import MalformedZnode
from broker.metadata.znodes.layout import CHANGE_NOTE_PARENTS, TOP_LEVEL_PATHS
from broker.metadata.zookeeper import ZooKeeperSettings, ZooKeeperStore
from kctl.errors import CliError, ExitStatus

# kctl reports what went wrong itself; `-v` shows what else the broker's rooms have to say.
logging.getLogger("broker").addHandler(logging.NullHandler())

ZOOKEEPER_SCHEME = "zookeeper://"
ZOOKEEPER_SESSION_MS = 18_000

# What a node is to people, by its path; the first that fits.
KINDS = {
    "topics": r"/brokers/topics/[^/]+",
    "partitions": r"/brokers/topics/[^/]+/partitions/\d+/state",
    "topic configs": r"/config/topics/.+",
    "broker configs": r"/config/brokers/.+",
    "client configs": r"/config/clients/.+",
    "user configs": r"/config/users/.+",
    "ip configs": r"/config/ips/.+",
    "acls": r"/kafka-acl/[^/]+/.+|/kafka-acl-extended/[^/]+/[^/]+/.+",
    "delegation tokens": r"/delegation_token/tokens/.+",
    "consumer offsets": r"/consumers/[^/]+/offsets/[^/]+/.+",
    "topic deletions": r"/admin/delete_topics/.+",
    "cluster id": r"/cluster/id",
    "controller epoch": r"/controller_epoch",
    "producer ids": r"/latest_producer_id_block",
    "features": r"/feature",
    "change notes": r"(?:" + "|".join(CHANGE_NOTE_PARENTS) + r")/.+",
    "broker registrations": rf"{BROKER_IDS_PATH}/.+",
    "controller": ControllerZnode.PATH,
    "other nodes": r".*",
}


@dataclass
class CopyPlan:
    """What goes over, and what stays."""

    cluster_id: str
    operations: list[Operation] = field(default_factory=list)
    copied: dict[str, int] = field(default_factory=dict)
    """How many nodes of each kind go over."""
    left_out: dict[str, int] = field(default_factory=dict)

    def count(self, path: str, counts: dict[str, int]) -> None:
        """Count a node under its kind."""
        kind = next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, path))
        counts[kind] = counts.get(kind, 0) + 1


def plan_copy(nodes: Iterable[BranchNode], cluster_id: str) -> CopyPlan:
    """Decide what becomes of each node; parents must come before their children."""
    plan = CopyPlan(cluster_id)
    last: list[Operation] = []
    for node in nodes:
        if not _is_copied(node):
            plan.count(node.path, plan.left_out)
            continue
        plan.count(node.path, plan.copied)
        to = last if node.path in (CLUSTER_PATH, ClusterIdZnode.PATH) else plan.operations
        to.append(Create(node.path, node.data))
        if node.path == BROKER_SEQUENCE_ID_PATH:  # its version is what Kafka counts with
            to += [SetData(node.path, node.data)] * node.stat.version
    plan.operations += last
    return plan


def _is_copied(node: BranchNode) -> bool:
    is_note = parent_of(node.path) in CHANGE_NOTE_PARENTS
    return not (node.stat.ephemeral_owner or is_note or node.path == ControllerZnode.PATH)


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


class NothingThere(CliError):
    """A place without metadata: wrong to copy from, right to copy to."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"there is no metadata at {place}",
            f"a broker keeps {METADATA_FILE} in the first of its log.dirs; "
            "a ZooKeeper's chroot may differ from the one given",
        )


async def read_plan(source: Place, *, live: bool) -> CopyPlan:
    """Read the whole source; CliError if there is no cluster in it, or one that runs."""
    async with source.opened(create=False) as store:
        if not await store.exists(ClusterIdZnode.PATH):
            raise NothingThere(source.text)
        cluster_id = ClusterIdZnode.decode((await store.get(ClusterIdZnode.PATH)).data)
        nodes = [node for path in TOP_LEVEL_PATHS for node in await read_branch(store, path)]
    running = [n.path.rpartition("/")[2] for n in nodes if parent_of(n.path) == BROKER_IDS_PATH]
    if running and not live:
        raise CliError(
            f"brokers are running on {source.text}: {', '.join(running)}",
            "stop them, so that nothing changes while it is copied; or say --live",
        )
    return plan_copy(nodes, cluster_id)


async def check_target(target: Place, cluster_id: str) -> None:
    """CliError unless the target is free, and its partitions, if any, of this cluster."""
    owner = target.belongs_to()
    if owner not in (None, cluster_id):
        raise CliError(
            f"{target.text} belongs to another cluster: {owner}, not {cluster_id}",
            "its meta.properties says so; a broker of this cluster would not start there",
        )
    try:
        async with target.opened(create=False) as store:
            await _refuse_what_is_there(target, store)
    except NothingThere:
        return


async def write_plan(target: Place, plan: CopyPlan) -> None:
    """Make the nodes. The embedded store takes them as one change, ZooKeeper in batches."""
    async with target.opened(create=True) as store:
        await _refuse_what_is_there(target, store)
        if isinstance(store, EmbeddedStore):
            await store.multi(plan.operations)
        else:
            await multi_in_batches(store, plan.operations)


async def _refuse_what_is_there(target: Place, store: MetadataStore) -> None:
    found = [path for path in TOP_LEVEL_PATHS if await store.exists(path)]
    if found:
        raise CliError(
            f"{target.text} has metadata already: {', '.join(found)}",
            "nothing was changed; copy to an empty place",
        )
