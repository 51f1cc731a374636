"""Keeps the quotas of clients as they are in the store."""

import logging

from broker.api.client_quotas import Entity, EntityType, stored_quotas
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.metadata.client_configs import ClientConfigStore
from broker.quota.limits import DEFAULT, Name
from broker.quota.quota_managers import QuotaManagers

logger = logging.getLogger(__name__)


class ClientQuotas:
    """Reads quotas at startup, and all of them again when one has changed.

    Field `_known`: entities that had quotas when they were last read.
    """

    def __init__(self, config: BrokerConfig, store: ClientConfigStore, clock: Clock) -> None:
        self.managers = QuotaManagers(config)
        self._store = store
        self._clock = clock
        self._known: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}

    def ip_throttle_ms(self, host: str) -> int:
        """Count a new connection; returns its delay if its address connects too fast."""
        return self.managers.connection_rates.record(host, self._clock.now_ms())

    async def reload(self, entity: str) -> None:
        """Read quotas again, after the config of an entity has changed."""
        await self.load()

    async def load(self) -> None:
        """Apply the changes in the store; StoreError if it cannot be read."""
        found = {
            tuple(entity.items()): dict(quotas)
            for entity, quotas in await stored_quotas(self._store)
        }
        for key in {**self._known, **found}:
            quotas = found.get(key, {})
            if quotas != self._known.get(key):
                logger.info("changed quotas entity=%s quotas=%s", dict(key), quotas)
                self._apply(dict(key), quotas)
        self._known = found

    def _apply(self, entity: Entity, quotas: dict[str, float]) -> None:
        if EntityType.IP in entity:
            self.managers.update_ip(entity[EntityType.IP], quotas)
        else:
            user, client_id = (_name(entity, k) for k in (EntityType.USER, EntityType.CLIENT_ID))
            self.managers.update_client(user, client_id, quotas)


def _name(entity: Entity, kind: EntityType) -> Name:
    if kind not in entity:
        return None
    name = entity[kind]
    return DEFAULT if name is None else name
