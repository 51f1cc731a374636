"""Builds the authorizer that the broker's file names, with its ACLs and its audit log."""

import logging
from pathlib import Path

from broker.clock import Clock
from broker.config import BrokerConfig, ConfigError
from broker.config.settings.authorizer import AuthorizerSettings
from broker.metadata.acl_store import AclStore
from broker.metadata.store import MetadataStore
from broker.security.audit import json_logger, write_json_lines
from broker.security.authorizer import AclAuthorizer


class Authorization:
    """The authorizer and the ACLs that it decides by; both None if the file names none."""

    def __init__(self, config: BrokerConfig, store: MetadataStore, clock: Clock) -> None:
        self.authorizer: AclAuthorizer | None = None
        self.acls: AclStore | None = None
        self._audit_handler: logging.Handler | None = None
        if config.authorizer_class_name:
            settings = AuthorizerSettings.parse(config.originals)
            self.authorizer = AclAuthorizer(
                parse_super_users(settings.super_users),
                allow_everyone=settings.allow_everyone_if_no_acl_found,
            )
            self.acls = AclStore(store, self.authorizer.update, clock)
            self._audit_path = settings.authorizer_audit_json_path

    async def start(self) -> None:
        """Read all ACLs; StoreError and ConfigError say why that is impossible."""
        if self.acls is None:
            return
        if self._audit_path:
            try:
                self._audit_handler = write_json_lines(Path(self._audit_path))
            except OSError as error:
                raise ConfigError(f"authorizer.audit.json.path: {error}") from error
        await self.acls.start()

    async def stop(self) -> None:
        """Stop following changes."""
        if self.acls is not None:
            await self.acls.stop()
        if self._audit_handler is not None:
            json_logger.removeHandler(self._audit_handler)
            self._audit_handler.close()


def parse_super_users(text: str) -> list[str]:
    """The principals in `super.users`; ConfigError for one that is not `type:name`."""
    users = [user.strip() for user in text.split(";")] if text else []
    for user in users:
        if ":" not in user:
            raise ConfigError(
                f"super.users={text}: expected a string in format principalType:principalName "
                f"but got {user!r}; write User:name, separated by semicolons"
            )
    return users
