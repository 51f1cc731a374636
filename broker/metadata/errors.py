"""Errors of a metadata store: the ZooKeeper errors that callers handle, and their base class."""

from broker.errors import ApiError, ErrorCode


class StoreError(Exception):
    """An operation on `path` failed; after ConnectionLoss it may have been applied."""

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
    """The node to create exists."""

    what = "the node exists already"


class BadVersion(StoreError):
    """The node was changed since it was read."""

    what = "the node has another version"


class NotEmpty(StoreError):
    """The node to delete has children."""

    what = "the node has children"


class NoChildrenForEphemerals(StoreError):
    """Ephemeral nodes cannot have children."""

    what = "an ephemeral node cannot have children"


class SessionExpired(StoreError):
    """The session has expired and its ephemeral nodes are gone; nothing was changed."""

    what = "the session has expired"


class ConnectionLoss(StoreError):
    """The connection broke before the response: the change may or may not have been made."""

    what = "the connection to the metadata store was lost"


class AuthFailed(StoreError):
    """ZooKeeper rejected the credentials; retrying does not help."""

    what = "ZooKeeper rejected the credentials"


class NotAllowed(StoreError):
    """The node's ACL does not allow the operation."""

    what = "ZooKeeper does not allow it: zookeeper.auth.digest has the wrong credentials, or none"


class StoreWriteFailed(StoreError, ApiError):
    """The embedded store could not write its file, usually because the disk is full.

    The change was undone: memory and file agree. It is also an ApiError, so that any request that
    changes metadata is answered with KAFKA_STORAGE_ERROR. The store logs the failure itself, at
    most once a minute; callers need not.
    """

    what = "the metadata store cannot be written"

    def __init__(self, path: str, detail: str = "") -> None:
        StoreError.__init__(self, path, detail)
        self.code = ErrorCode.KAFKA_STORAGE_ERROR
        self.message = str(self)

    def __str__(self) -> str:
        return StoreError.__str__(self)


class StoreInUse(StoreError):
    """Another process has the embedded store open."""

    what = "another process uses this metadata store"
