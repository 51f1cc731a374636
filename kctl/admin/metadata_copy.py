"""`kctl metadata copy`: copies a cluster's metadata from one store to another.

Copied is what brokers need to start: topics with ids, assignments and partition states, configs,
ACLs, tokens, features, producer ids, offsets in znodes, the cluster id and the controller epoch,
so that epochs keep increasing. Not copied is what belongs to running brokers: registrations and
all other ephemeral nodes, the controller, and change notifications.

The target must not contain Kafka metadata. The cluster id is written last: if a copy in batches
fails, no broker of the cluster starts on the partial copy.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.metadata.embedded import EmbeddedStore
from broker.metadata.recursive import BranchNode, multi_in_batches, read_branch
from broker.metadata.store import Create, MetadataStore, Operation, SetData, parent_of
from broker.metadata.znodes.brokers import BROKER_IDS_PATH, BROKER_SEQUENCE_ID_PATH
from broker.metadata.znodes.cluster import CLUSTER_PATH, ClusterIdZnode
from broker.metadata.znodes.controller import ControllerZnode
from broker.metadata.znodes.layout import CHANGE_NOTIFICATION_PARENTS, TOP_LEVEL_PATHS
from kctl.admin.metadata_place import NothingThere, Place
from kctl.cli.errors import CliError

# Kinds of nodes, by path; the first match counts.
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
    "change notes": r"(?:" + "|".join(CHANGE_NOTIFICATION_PARENTS) + r")/.+",
    "broker registrations": rf"{BROKER_IDS_PATH}/.+",
    "controller": ControllerZnode.PATH,
    "other nodes": r".*",
}


@dataclass
class CopyPlan:
    """What is copied, and what is not."""

    cluster_id: str
    operations: list[Operation] = field(default_factory=list)
    copied: dict[str, int] = field(default_factory=dict)
    """The number of copied nodes of each kind."""
    left_out: dict[str, int] = field(default_factory=dict)

    def count(self, path: str, counts: dict[str, int]) -> None:
        """Count a node under its kind."""
        kind = next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, path))
        counts[kind] = counts.get(kind, 0) + 1


def plan_copy(nodes: Iterable[BranchNode], cluster_id: str) -> CopyPlan:
    """Decide for each node whether it is copied; parents must come before their children."""
    plan = CopyPlan(cluster_id)
    last: list[Operation] = []
    for node in nodes:
        if not _is_copied(node):
            plan.count(node.path, plan.left_out)
            continue
        plan.count(node.path, plan.copied)
        to = last if node.path in (CLUSTER_PATH, ClusterIdZnode.PATH) else plan.operations
        to.append(Create(node.path, node.data))
        if node.path == BROKER_SEQUENCE_ID_PATH:  # Kafka uses its version as a counter
            to += [SetData(node.path, node.data)] * node.stat.version
    plan.operations += last
    return plan


def _is_copied(node: BranchNode) -> bool:
    is_note = parent_of(node.path) in CHANGE_NOTIFICATION_PARENTS
    return not (node.stat.ephemeral_owner or is_note or node.path == ControllerZnode.PATH)


async def read_plan(source: Place, *, live: bool) -> CopyPlan:
    """Read the whole source; CliError if it has no cluster, or a running one."""
    async with source.opened(create=False) as store:
        if not await store.exists(ClusterIdZnode.PATH):
            raise NothingThere(source.text)
        cluster_id = ClusterIdZnode.decode((await store.get(ClusterIdZnode.PATH)).data)
        nodes = [node for path in TOP_LEVEL_PATHS for node in await read_branch(store, path)]
    running = [n.path.rpartition("/")[2] for n in nodes if parent_of(n.path) == BROKER_IDS_PATH]
    if running and not live:
        raise CliError(
            f"brokers are running on {source.text}: {', '.join(running)}",
            "stop them, so that nothing changes during the copy; or use --live",
        )
    return plan_copy(nodes, cluster_id)


async def check_target(target: Place, cluster_id: str) -> None:
    """CliError unless the target is empty and its partitions, if any, belong to this cluster."""
    owner = target.belongs_to()
    if owner not in (None, cluster_id):
        raise CliError(
            f"{target.text} belongs to another cluster: {owner}, not {cluster_id}",
            "see its meta.properties; a broker of this cluster would not start there",
        )
    try:
        async with target.opened(create=False) as store:
            await _refuse_what_is_there(target, store)
    except NothingThere:
        return


async def write_plan(target: Place, plan: CopyPlan) -> None:
    """Create the nodes: in one transaction in the embedded store, in batches in ZooKeeper."""
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
            f"{target.text} already contains metadata: {', '.join(found)}",
            "nothing was changed; choose an empty target",
        )
