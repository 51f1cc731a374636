"""Keeps the SCRAM credentials of users as they are in the metadata store."""

from broker.metadata.client_configs import ClientConfigStore
from broker.metadata.zk_config_manager import ZkConfigManager
from broker.metadata.znodes.configs import desanitize
from broker.security.scram_credentials import ScramCredentialCache

_USERS = "users"


async def follow_user_credentials(
    manager: ZkConfigManager, configs: ClientConfigStore, cache: ScramCredentialCache
) -> None:
    """Read all credentials, and every change from now on; the manager must have been started."""

    async def on_change(entity: str) -> None:
        kind, _, name = entity.partition("/")
        if kind == _USERS and "/" not in name:  # not users/U/clients/C, which has quotas only
            cache.update(desanitize(name), await configs.read(entity))

    manager.on_client_change(on_change)
    for name, config in (await configs.read_all(_USERS)).items():
        cache.update(desanitize(name), config)
