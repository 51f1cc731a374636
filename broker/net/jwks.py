"""The keys of an OAuth provider: a JWKS, read periodically from a file or over https.

It is read in a thread. While it cannot be read, the keys read before stay valid; a token signed
with an unknown key causes an early refresh, because providers change their keys.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from broker.security.oauthbearer import parse_jwks
from broker.security.tls import TlsSettings, client_context

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 10.0
_MAX_BYTES: Final = 1024 * 1024
_MIN_EARLY_REFRESH_S: Final = 10.0
"""Unknown keys cause a refresh at most this often: anyone can invent one."""


@dataclass(frozen=True)
class JwksSettings:
    """Where the keys are, and how often they are read."""

    url: str
    refresh_ms: int = 3_600_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    trusted: str | None = None
    """The certificates that are trusted for https, in PEM; None: those of the operating system."""


class JwksKeys:
    """The keys that are known now; call it with a key's id."""

    def __init__(self, settings: JwksSettings) -> None:
        self._settings = settings
        self._keys: Mapping[str | None, Any] = {}
        self._is_wanted = asyncio.Event()

    def __call__(self, key_id: str | None) -> Any:
        """The key, or None if it is unknown."""
        found = self._keys.get(key_id)
        if found is None:
            self._is_wanted.set()
        return found

    async def follow(self) -> None:
        """Read the keys now and from time to time."""
        backoff_s = self._settings.retry_backoff_ms / 1000
        while True:
            try:
                self._keys = await asyncio.to_thread(self._read)
            except (OSError, ValueError) as error:
                logger.error("cannot read the keys of the OAuth provider: %s", error)
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, self._settings.retry_backoff_max_ms / 1000)
                continue
            backoff_s = self._settings.retry_backoff_ms / 1000
            await self._wait()

    async def _wait(self) -> None:
        """Until the next refresh, or until an unknown key was used."""
        self._is_wanted.clear()
        pause_s = min(_MIN_EARLY_REFRESH_S, self._settings.refresh_ms / 1000)
        await asyncio.sleep(pause_s)
        try:
            async with asyncio.timeout(max(0, self._settings.refresh_ms / 1000 - pause_s)):
                await self._is_wanted.wait()
        except TimeoutError:
            return

    def _read(self) -> Mapping[str | None, Any]:
        # Imported here: few brokers have OAUTHBEARER, and it takes 50 ms.
        import urllib.request
        from urllib.parse import urlsplit

        url = urlsplit(self._settings.url)
        if url.scheme == "file":
            return parse_jwks(Path(urllib.request.url2pathname(url.path)).read_text())
        tls = client_context(TlsSettings(trusted=self._settings.trusted))
        # Only https, http and file pass the check of the setting.
        with urllib.request.urlopen(  # noqa: S310
            self._settings.url, timeout=_TIMEOUT_S, context=tls
        ) as response:
            return parse_jwks(response.read(_MAX_BYTES).decode())
