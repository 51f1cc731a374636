"""How a metadata store fails: the few ZooKeeper errors that callers branch on, and their base."""


class StoreError(Exception):
    """An operation on `path` that the store did not carry out, or cannot say whether it did."""

    what = "the metadata store failed"

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.path}: {self.what}" + (f" ({self.detail})" if self.detail else "")


class NoNode(StoreError):
    """The node, or the parent of the node to create, does not exist."""

    what = "no such node"


class NodeExists(StoreError):
    """The node to create is there already."""

    what = "the node exists already"


class BadVersion(StoreError):
    """Somebody else has changed the node since it was read."""

    what = "the node has another version"


class NotEmpty(StoreError):
    """The node to delete has children."""

    what = "the node has children"


class NoChildrenForEphemerals(StoreError):
    """Ephemeral nodes cannot have children."""

    what = "an ephemeral node cannot have children"


class SessionExpired(StoreError):
    """The session is over, its ephemeral nodes are gone: nothing was done."""

    what = "the session has expired"


class ConnectionLoss(StoreError):
    """The connection broke before the answer came: a change may or may not have been made."""

    what = "the connection to the metadata store was lost"


class AuthFailed(StoreError):
    """ZooKeeper does not take our credentials; it will not take them later either."""

    what = "ZooKeeper refused the credentials"


class NotAllowed(StoreError):
    """The node's ACL does not let us do this."""

    what = "ZooKeeper does not allow it: zookeeper.auth.digest has the wrong credentials, or none"


class StoreInUse(StoreError):
    """Another process has the embedded store open."""

    what = "another process uses this metadata store"
