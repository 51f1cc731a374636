"""Broker id and cluster id: consistent between settings, metadata store and meta.properties."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from broker.log.checkpoints import MetaProperties
from broker.log.log_dir import LogDir

logger = logging.getLogger(__name__)


class IdentityError(Exception):
    """The log directories belong to another broker or another cluster; nothing was changed."""


@dataclass(frozen=True)
class Identity:
    """A broker's id and the id of its cluster."""

    broker_id: int
    cluster_id: str


def stored_broker_id(dirs: Iterable[LogDir]) -> int | None:
    """The broker id in meta.properties; IdentityError if the directories have different ones."""
    found = {
        properties.broker_id: log_dir.path
        for log_dir in dirs
        if (properties := log_dir.meta_properties()) is not None
        and properties.broker_id is not None
    }
    if len(found) > 1:
        listed = ", ".join(f"{path} has broker.id={owner}" for owner, path in found.items())
        raise IdentityError(f"the log directories belong to different brokers: {listed}")
    return next(iter(found), None)


def stored_cluster_id(dirs: Iterable[LogDir]) -> str | None:
    """The cluster id in the first meta.properties that has one; None if all directories are new.

    `check_cluster_id` finds directories that have another one.
    """
    known = (properties for log_dir in dirs if (properties := log_dir.meta_properties()))
    return next((properties.cluster_id for properties in known if properties.cluster_id), None)


def check_broker_id(broker_id: int, dirs: Iterable[LogDir]) -> None:
    """IdentityError if a directory belongs to another broker."""
    for log_dir in dirs:
        properties = log_dir.meta_properties()
        if properties is not None and properties.broker_id not in (None, broker_id):
            raise IdentityError(
                f"{log_dir.path}/meta.properties has broker.id={properties.broker_id}, but "
                f"{broker_id} is configured: restore broker.id or use another directory"
            )


def check_cluster_id(cluster_id: str | None, dirs: Iterable[LogDir]) -> None:
    """IdentityError if a directory belongs to another cluster; with None, if to any cluster."""
    for log_dir in dirs:
        properties = log_dir.meta_properties()
        if properties is not None and properties.cluster_id not in (None, cluster_id):
            found = "has none" if cluster_id is None else f"has {cluster_id}"
            raise IdentityError(
                f"{log_dir.path}/meta.properties has cluster.id={properties.cluster_id}, but "
                f"the metadata {found}: the directory belongs to another cluster"
            )


def write_identity(identity: Identity, dirs: Iterable[LogDir]) -> None:
    """Write meta.properties where it is missing or incomplete."""
    for log_dir in dirs:
        properties = log_dir.meta_properties()
        wanted = MetaProperties(identity.broker_id, identity.cluster_id)
        if properties is None:
            log_dir.write_meta_properties(wanted)
        elif (properties.broker_id, properties.cluster_id) != (
            identity.broker_id,
            identity.cluster_id,
        ):
            log_dir.write_meta_properties(
                MetaProperties(
                    identity.broker_id,
                    identity.cluster_id,
                    properties.version,
                    properties.others,
                )
            )
