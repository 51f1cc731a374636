"""The SCRAM credentials that this broker knows: those of users, and those of delegation tokens.

The server keeps them as they are in the metadata store; a login looks them up here, without
waiting for the store.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial

from broker.security.scram import (
    ScramCredential,
    ScramLogin,
    ScramLookup,
    ScramMechanism,
    parse_credential,
)

logger = logging.getLogger(__name__)

TokenLookup = Callable[[ScramMechanism, str], ScramLogin | None]
"""The login of a delegation token by its id; None if there is no such token."""


def _no_tokens(_: ScramMechanism, __: str) -> None:
    return None


class ScramCredentialCache:
    """Credentials by mechanism and user."""

    def __init__(self) -> None:
        self._by_mechanism: dict[ScramMechanism, dict[str, ScramCredential]] = {
            mechanism: {} for mechanism in ScramMechanism
        }
        self.find_token: TokenLookup = _no_tokens
        """Set when delegation tokens are enabled."""

    def update(self, user: str, config: Mapping[str, str]) -> None:
        """Replace the credentials of a user by those in its config; none if it is empty."""
        for mechanism, known in self._by_mechanism.items():
            known.pop(user, None)
            if text := config.get(mechanism.value):
                try:
                    known[user] = parse_credential(text)
                except ValueError:
                    logger.error("ignored malformed credential user=%s %s", user, mechanism.value)

    def lookup(self, mechanism: ScramMechanism) -> ScramLookup:
        """How the broker's side of a SCRAM exchange finds credentials."""
        return partial(self._find, mechanism)

    def _find(self, mechanism: ScramMechanism, name: str, is_token: bool) -> ScramLogin | None:
        if is_token:
            return self.find_token(mechanism, name)
        credential = self._by_mechanism[mechanism].get(name)
        return None if credential is None else ScramLogin(credential, name)
