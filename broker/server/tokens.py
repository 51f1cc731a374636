"""Delegation tokens of a broker: built from its settings, removed when they expire."""

import asyncio
import logging

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.metadata.delegation_token_manager import DelegationTokenManager, TokenLifetimes
from broker.metadata.errors import StoreError
from broker.metadata.store import MetadataStore
from broker.security.delegation_tokens import TokenCache
from broker.security.scram_credentials import ScramCredentialCache

logger = logging.getLogger(__name__)


def build_token_manager(
    config: BrokerConfig, store: MetadataStore, scram: ScramCredentialCache, clock: Clock
) -> DelegationTokenManager | None:
    """The manager of tokens, which SCRAM logins use too; None without a secret key."""
    secret_key = config.delegation_token_secret
    if secret_key is None:
        return None
    cache = TokenCache(secret_key, clock)
    scram.find_token = cache.login
    lifetimes = TokenLifetimes(
        config.delegation_token_max_lifetime_ms, config.delegation_token_expiry_time_ms
    )
    return DelegationTokenManager(store, cache, lifetimes, clock)


async def expire_tokens(manager: DelegationTokenManager, interval_s: float) -> None:
    """Remove expired tokens from time to time."""
    while True:
        await asyncio.sleep(interval_s)
        try:
            await manager.remove_expired()
        except StoreError as error:
            logger.warning("cannot remove expired delegation tokens: %s", error)
