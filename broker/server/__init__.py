"""The broker as a whole: builds its parts, starts them in order and stops them in reverse.

`server` is the only module that knows all parts. The others are what belongs to no single part:
identity (broker and cluster id), membership (registration in the metadata store), stores (opening
that store), inter_broker (connections to the other brokers), coordination (group and transaction
coordinators), controlled_shutdown, and periodic background work.
"""

from broker.server.server import Server, StartAborted

__all__ = ["Server", "StartAborted"]
