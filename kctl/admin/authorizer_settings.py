"""Settings of the brokers' authorizer, as far as the brokers show them.

Apache Kafka does not know the settings of an authorizer and hides their values; then only whether
they are set is known.
"""

from dataclasses import dataclass

from broker.errors import ApiError
from broker.net.client import Client
from kctl.admin.configs import describe_configs
from kctl.model.configs import Config, Entity, EntityType

SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"


@dataclass(frozen=True)
class ShownSettings:
    """What a broker shows."""

    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False
    hidden: tuple[str, ...] = ()
    """Settings that are set to values which the broker does not show, or may be."""


async def shown_settings(client: Client) -> ShownSettings:
    """The settings of one broker; all of them hidden if it refuses to describe its configs."""
    await client.refresh_metadata()
    broker = Entity(EntityType.BROKERS, str(min(client.cluster.nodes)))
    try:
        configs = (await describe_configs(client, [broker], synonyms=False))[broker]
    except ApiError:
        return ShownSettings(hidden=(SUPER_USERS, ALLOW_EVERYONE))
    found = {config.name: config for config in configs}
    users, everyone = found.get(SUPER_USERS), found.get(ALLOW_EVERYONE)
    return ShownSettings(
        frozenset(user.strip() for user in _value(users).split(";") if user.strip()),
        _value(everyone).strip().lower() == "true",
        tuple(one.name for one in (users, everyone) if one and one.sensitive and one.value is None),
    )


def _value(config: Config | None) -> str:
    return (config.value if config else None) or ""
