"""All quotas of a broker."""

from collections.abc import Callable, Mapping

from broker.config import BrokerConfig
from broker.quota.client_quota_manager import ClientQuotaManager, ControllerMutationQuotaManager
from broker.quota.connection_rates import ConnectionRates
from broker.quota.limits import Name
from broker.quota.rates import Windows

_MS_PER_S = 1000


class QuotaManagers:
    """One manager for each type of quota.

    Field `on_enabled`: called when the first quota of a client is set, so that requests need not
    look for quotas before.
    """

    def __init__(self, config: BrokerConfig) -> None:
        windows = Windows(config.quota_window_num, config.quota_window_size_seconds * _MS_PER_S)
        self.produce = ClientQuotaManager(windows)
        self.fetch = ClientQuotaManager(windows)
        self.request = ClientQuotaManager(windows, max_throttle_ms=windows.window_ms)
        self.controller_mutation = ControllerMutationQuotaManager(
            Windows(
                config.controller_quota_window_num,
                config.controller_quota_window_size_seconds * _MS_PER_S,
            )
        )
        self.connection_rates = ConnectionRates(windows)
        self.on_enabled: Callable[[], None] = lambda: None

    @property
    def is_enabled(self) -> bool:
        """Whether any quota of clients was set since the broker started."""
        return any(manager.is_enabled for manager in self._by_key().values())

    def update_client(self, user: Name, client_id: Name, quotas: Mapping[str, float]) -> None:
        """Replace the quotas of an entity."""
        for key, manager in self._by_key().items():
            manager.update(user, client_id, quotas.get(key))
        if self.is_enabled:
            self.on_enabled()

    def update_ip(self, address: str | None, quotas: Mapping[str, float]) -> None:
        """Replace the quotas of an address, or (None) of all that have none of their own."""
        self.connection_rates.update(address, quotas.get("connection_creation_rate"))

    def _by_key(self) -> dict[str, ClientQuotaManager | ControllerMutationQuotaManager]:
        return {
            "producer_byte_rate": self.produce,
            "consumer_byte_rate": self.fetch,
            "request_percentage": self.request,
            "controller_mutation_rate": self.controller_mutation,
        }
