"""Connects the admin port to the parts of the broker."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from broker.admin.admin_server import AdminServer
from broker.admin.broker_state import BrokerState
from broker.admin.sources import AdminSources
from broker.api.context import Services
from broker.api.dispatch import Dispatcher
from broker.api.measured import Measured, measured
from broker.config import BrokerConfig
from broker.metadata.session import Session
from broker.net.listener import Listener
from broker.net.poller import running_poller
from broker.quota.quota_managers import QuotaManagers
from broker.server.background import Background
from broker.server.platform import ServerListener

logger = logging.getLogger(__name__)

_ROTATION_S: Final = 60.0
"""Quantiles of request times cover the last one to two of these intervals."""


class AdminPort:
    """The admin port of a broker, from binding to its end. It answers while the broker starts."""

    def __init__(self, config: BrokerConfig, listeners: Sequence[ServerListener]) -> None:
        """Bind and serve; OSError if the address cannot be bound."""
        loop = asyncio.get_running_loop()
        self._sources = AdminSources(
            listeners={
                listener.address.name: listener
                for listener in listeners
                if isinstance(listener, Listener)
            },
            poller=running_poller(),
            run_in_loop=loop.call_soon_threadsafe,
        )
        try:
            self._server = AdminServer(config, self._sources)
        except OSError as error:
            reason = error.strerror or error
            raise OSError(f"cannot listen on {config.admin_listeners}: {reason}") from error
        self._server.start()
        logger.info("admin port is open url=%s", self._server.url)

    def attach(
        self, broker_id: int, services: Services, session: Session, dispatcher: Dispatcher
    ) -> Measured:
        """Expose the built broker; returns a dispatcher that measures."""
        sources = self._sources
        sources.broker_id = broker_id
        sources.session = session
        sources.services = services
        services.request_metrics = sources.requests
        assert sources.poller is not None  # noqa: S101  # set by the constructor
        return measured(dispatcher, sources.requests, sources.poller)

    def show_quotas(self, quotas: QuotaManagers) -> None:
        """Serve what is measured for client quotas."""
        self._sources.quotas = quotas

    def run_periodic_work(self, background: Background) -> None:
        """Rotate the intervals of quantiles and rates."""
        background.every(_ROTATION_S, self._sources.rotate, in_thread=False)

    def set_state(self, state: BrokerState) -> None:
        """Report this state from now on."""
        self._sources.state = state

    def close(self) -> None:
        """Close the port."""
        self._server.stop()
