"""Which quota applies to a client: by user, by client id, or by both.

    1. /config/users/U/clients/C                5. /config/users/<default>/clients/<default>
    2. /config/users/U/clients/<default>        6. /config/users/<default>
    3. /config/users/U                          7. /config/clients/C
    4. /config/users/<default>/clients/C        8. /config/clients/<default>

The first that exists applies. It also decides which clients share the quota: all clients of the
user (3, 6), all with the client id (7, 8), or those with the same user and client id.
"""

from enum import Enum
from typing import Final, NamedTuple


class Entity(Enum):
    """Placeholders for names in a quota's entity."""

    DEFAULT = "<default>"
    """All users, or client ids, that have no quota of their own."""


Name = str | Entity | None
"""A user or client id; None if the quota does not depend on it."""
DEFAULT: Final = Entity.DEFAULT


class Applied(NamedTuple):
    """The quota of a client."""

    key: tuple[str | None, str | None]
    """User and client id; clients with the same key share the quota."""
    limit: float


class QuotaLimits:
    """The quotas of one type."""

    def __init__(self) -> None:
        self._limits: dict[tuple[Name, Name], float] = {}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def update(self, user: Name, client_id: Name, limit: float | None) -> None:
        """Set a quota; None removes it."""
        if limit is None:
            self._limits.pop((user, client_id), None)
        else:
            self._limits[user, client_id] = limit

    def find(self, user: str, client_id: str) -> Applied | None:
        """The quota that applies; None if no quota does."""
        both, of_user, of_client = (user, client_id), (user, None), (None, client_id)
        for entity, key in (
            (both, both),
            ((user, DEFAULT), both),
            (of_user, of_user),
            ((DEFAULT, client_id), both),
            ((DEFAULT, DEFAULT), both),
            ((DEFAULT, None), of_user),
            (of_client, of_client),
            ((None, DEFAULT), of_client),
        ):
            limit = self._limits.get(entity)
            if limit is not None:
                return Applied(key, limit)
        return None
