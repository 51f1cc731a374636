"""SCRAM credentials in ZooKeeper, for the time before the first broker starts.

Brokers that log in to each other with SCRAM find no credentials in a new cluster; kafka-configs
--zookeeper writes them in the same way.
"""

import re
from base64 import b64encode
from collections.abc import Sequence

from broker.metadata.client_configs import ClientConfigStore
from broker.metadata.recursive import ensure_path
from broker.metadata.znodes.configs import (
    DEFAULT_ENTITY,
    ConfigChangeZnode,
    desanitize,
    sanitize,
)
from broker.security.scram import ScramMechanism, client_key, server_key, stored_key
from kctl.admin.metadata_place import Place
from kctl.model.users import Credential, NewCredential

_ITERATIONS = re.compile(r"(?:^|,)iterations=(\d+)")


async def read_credentials(place: Place, users: Sequence[str] = ()) -> list[Credential]:
    """The credentials of these users, of all users if none are named."""
    async with place.opened(create=False) as store:
        configs = await ClientConfigStore(store).read_all("users")
    found = []
    for node, config in sorted(configs.items()):
        user = desanitize(node)
        if node == DEFAULT_ENTITY or (users and user not in users):
            continue
        found += [
            Credential(user, mechanism.value, int(match[1]))
            for mechanism in ScramMechanism
            if (match := _ITERATIONS.search(config.get(mechanism.value, "")))
        ]
    return found


async def write_credentials(
    place: Place, upserted: Sequence[NewCredential] = (), deleted: Sequence[Credential] = ()
) -> None:
    """Set and delete credentials; running brokers are notified."""
    async with place.opened(create=True) as store:
        await ensure_path(store, ConfigChangeZnode.PARENT)
        configs = ClientConfigStore(store)
        for user in users_of(upserted, deleted):
            entity = f"users/{sanitize(user)}"
            config = await configs.read(entity)
            for old in deleted:
                if old.user == user:
                    config.pop(old.mechanism, None)
            for new in upserted:
                if new.user == user:
                    config[new.mechanism.value] = stored_text(new)
            await configs.write(entity, config)


def stored_text(credential: NewCredential) -> str:
    """The credential as Kafka stores it; the password cannot be computed from it."""
    name = credential.mechanism.hash_name
    stored = stored_key(name, client_key(name, credential.salted_password))
    server = server_key(name, credential.salted_password)
    texts = (b64encode(data).decode() for data in (credential.salt, stored, server))
    iterations = credential.iterations
    return "salt={},stored_key={},server_key={},iterations={}".format(*texts, iterations)


def users_of(upserted: Sequence[NewCredential], deleted: Sequence[Credential]) -> list[str]:
    """The users of these credentials, each once."""
    return list(dict.fromkeys([one.user for one in upserted] + [one.user for one in deleted]))
