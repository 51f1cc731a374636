"""The controller as ZooKeeper knows it."""

import asyncio

from kctl.model.cluster import Controllership


def controllership_in(zookeeper: str, timeout_s: float) -> Controllership:
    """Id and epoch of the controller, and when it was elected; CliError if nothing answers."""
    # Imported here: kazoo is slow to import, and few runs need it.
    from kctl.admin.metadata_place import zookeeper_place
    from kctl.admin.znodes import read_controllership

    return asyncio.run(read_controllership(zookeeper_place(zookeeper, timeout_s)))
