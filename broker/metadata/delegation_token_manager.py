"""Kafka's DelegationTokenManagerZk: creates, renews and expires tokens, and follows their changes.

Any broker may change a token; the others read it again when they see the notification.
"""

import logging
from base64 import urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.metadata.change_notification_listener import ChangeNotificationListener
from broker.metadata.errors import NoNode
from broker.metadata.recursive import create_recursive, ensure_path
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.layout import delegation_token_paths
from broker.metadata.znodes.tokens import TOKENS_PATH, DelegationTokenZnode, TokenChangeZnode
from broker.security.delegation_tokens import TokenCache, TokenInformation, parse_principal
from broker.security.principal import KafkaPrincipal

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TokenLifetimes:
    """`delegation.token.max.lifetime.ms` and `delegation.token.expiry.time.ms`."""

    max_lifetime_ms: int
    expiry_time_ms: int


class DelegationTokenManager:
    """The tokens of the cluster, as this broker knows them."""

    def __init__(
        self, store: MetadataStore, cache: TokenCache, lifetimes: TokenLifetimes, clock: Clock
    ) -> None:
        self.cache = cache
        self._store = store
        self._lifetimes = lifetimes
        self._clock = clock
        self._notifications = ChangeNotificationListener(
            store, TokenChangeZnode.PARENT, self._on_change, clock
        )

    async def start(self) -> None:
        """Read all tokens, and every change from now on."""
        for path in delegation_token_paths():
            await ensure_path(self._store, path)
        await self._notifications.start()
        for token_id in await self._store.children(TOKENS_PATH):
            await self._read(token_id)

    async def stop(self) -> None:
        """Stop following changes."""
        await self._notifications.stop()

    async def create(
        self,
        owner: KafkaPrincipal,
        requester: KafkaPrincipal,
        renewers: tuple[KafkaPrincipal, ...],
        max_lifetime_ms: int,
    ) -> TokenInformation:
        """A new token; a lifetime of 0 or less selects the longest one allowed."""
        now_ms, longest_ms = self._clock.now_ms(), self._lifetimes.max_lifetime_ms
        lifetime_ms = min(max_lifetime_ms, longest_ms) if max_lifetime_ms > 0 else longest_ms
        token_id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        token = TokenInformation(
            token_id, owner, requester, renewers, now_ms, now_ms + lifetime_ms, 0
        ).expiring_at(now_ms + self._lifetimes.expiry_time_ms)
        await self._write(token)
        return token

    async def renew(self, principal: KafkaPrincipal, hmac: bytes, period_ms: int) -> int:
        """Renew a token; returns its new expiry time. ApiError if it cannot be renewed."""
        token = self._usable(principal, hmac)
        period_ms = self._lifetimes.expiry_time_ms if period_ms < 0 else period_ms
        renewed = token.expiring_at(self._clock.now_ms() + period_ms)
        await self._write(renewed)
        return renewed.expiry_timestamp_ms

    async def expire(self, principal: KafkaPrincipal, hmac: bytes, period_ms: int) -> int:
        """Expire a token after `period_ms`, at once if negative; returns its expiry time."""
        token, now_ms = self._usable(principal, hmac), self._clock.now_ms()
        if period_ms < 0:
            await self._remove(token.token_id)
            return now_ms
        changed = token.expiring_at(now_ms + period_ms)
        await self._write(changed)
        return changed.expiry_timestamp_ms

    async def remove_expired(self) -> None:
        """Delete the expired tokens."""
        now_ms = self._clock.now_ms()
        for token in self.cache.all():
            if token.is_expired(now_ms):
                logger.info(
                    "Delegation token expired token_id=%s owner=%s", token.token_id, token.owner
                )
                await self._remove(token.token_id)

    def _usable(self, principal: KafkaPrincipal, hmac: bytes) -> TokenInformation:
        token = self.cache.by_hmac(hmac)
        if token is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if not token.is_owner_or_renewer(principal):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        if token.is_expired(self._clock.now_ms()):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return token

    async def _write(self, token: TokenInformation) -> None:
        znode = DelegationTokenZnode(
            token.token_id,
            str(token.owner),
            str(token.requester),
            tuple(map(str, token.renewers)),
            token.issue_timestamp_ms,
            token.max_timestamp_ms,
            token.expiry_timestamp_ms,
        )
        path = DelegationTokenZnode.path(token.token_id)
        try:
            await self._store.set(path, znode.encode())
        except NoNode:
            await create_recursive(self._store, path, znode.encode())
        self.cache.update(token)
        await self._notify(token.token_id)

    async def _remove(self, token_id: str) -> None:
        with suppress(NoNode):  # another broker has removed it
            await self._store.delete(DelegationTokenZnode.path(token_id))
        self.cache.remove(token_id)
        await self._notify(token_id)

    async def _notify(self, token_id: str) -> None:
        data = TokenChangeZnode.encode(token_id)
        await self._store.create(TokenChangeZnode.PREFIX, data, sequence=True)

    async def _on_change(self, notification: bytes | None) -> None:
        await self._read(TokenChangeZnode.decode(notification))

    async def _read(self, token_id: str) -> None:
        path = DelegationTokenZnode.path(token_id)
        try:
            found = DelegationTokenZnode.decode(token_id, (await self._store.get(path)).data)
        except NoNode:
            self.cache.remove(token_id)
            return
        self.cache.update(
            TokenInformation(
                found.token_id,
                parse_principal(found.owner),
                parse_principal(found.requester),
                tuple(map(parse_principal, found.renewers)),
                found.issue_timestamp,
                found.max_timestamp,
                found.expiry_timestamp,
            )
        )
