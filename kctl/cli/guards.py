"""Restrictions of a cluster: they belong to the cluster, not to the name it was addressed by.

A context that is read-only or protected restricts its cluster also if another context, `-b` or a
variable addresses it. The cluster is recognized by its id, which `kctl context set` records; while
the id is unknown, by any of the addresses.
"""

from dataclasses import dataclass

from kctl.cli.contexts import Context
from kctl.cli.errors import CliError
from kctl.cli.options import Session


@dataclass(frozen=True)
class Guard:
    """A context that restricts changes on the cluster of this run."""

    name: str
    context: Context


def guards_of(session: Session) -> list[Guard]:
    """The contexts that restrict changes on the cluster of this run.

    CliError if the cluster has another id than the active context says.
    """
    name, active = session.active_context
    restricting = {
        other: context
        for other, context in session.contexts.named.items()
        if context.read_only or context.protected
    }
    if name is not None and active.read_only:
        return [Guard(name, active)]  # refused anyway: no need to ask the cluster
    if not restricting and active.cluster_id is None:
        return []
    if not session.names_cluster():  # e.g. a copy between two stores
        return [Guard(name, active)] if name is not None else []
    cluster_id = session.cluster_id()
    servers = _addresses(session.bootstrap_servers())
    return [
        Guard(other, context)
        for other, context in restricting.items()
        if other == name or _is_same(context, cluster_id, servers)
    ]


def check_cluster_id(session: Session, cluster_id: str | None) -> None:
    """CliError if the active context belongs to a cluster with another id."""
    name, context = session.active_context
    if cluster_id and context.cluster_id and cluster_id != context.cluster_id:
        raise CliError(
            f"{session.bootstrap_servers()} is cluster {cluster_id}, but context {name!r} belongs"
            f" to cluster {context.cluster_id}",
            f"check the addresses; if the cluster was replaced: kctl context set {name} -b …",
        )


def _is_same(context: Context, cluster_id: str | None, servers: set[str]) -> bool:
    if context.cluster_id and cluster_id:
        return context.cluster_id == cluster_id
    return bool(servers & _addresses(context.bootstrap_servers or ""))


def _addresses(servers: str) -> set[str]:
    return {address.strip().lower() for address in servers.split(",") if address.strip()}
