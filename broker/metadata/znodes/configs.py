"""/config: dynamic configs of topics, brokers, clients, users and ips, and notifications."""

from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote, unquote_plus

from broker.metadata.znodes.json_text import decode_json, encode_json, java_properties, reading

CONFIG_PATH = "/config"
CONFIG_TYPES = ("topics", "clients", "users", "brokers", "ips")
DEFAULT_ENTITY = "<default>"
"""The default entity: its config applies to all entities without a config of their own."""


def sanitize(name: str) -> str:
    """A user or client name as the name of a node: percent-encoded, as Kafka does it."""
    return quote(name, safe="-_.").replace("~", "%7E")


def desanitize(name: str) -> str:
    """The inverse of `sanitize`."""
    return unquote_plus(name)


class ConfigEntityZnode:
    """/config/TYPE/ENTITY, where an entity may be `users/U/clients/C`."""

    @staticmethod
    def path(entity_type: str, entity: str) -> str:
        """The path of an entity's config."""
        return f"{CONFIG_PATH}/{entity_type}/{entity}"

    @staticmethod
    def encode(config: Mapping[str, str]) -> bytes:
        """As Kafka writes a config whose keys were added in this order."""
        return encode_json({"version": 1, "config": java_properties(config)})

    @staticmethod
    def decode(path: str, data: bytes | None) -> dict[str, str]:
        """The config; empty for a node without data, such as the user of a client's config."""
        if not data:
            return {}
        fields = decode_json(path, data)
        with reading(path, data):
            return {str(key): str(value) for key, value in fields.get("config", {}).items()}


class ConfigChangeZnode:
    """/config/changes/config_change_N: notifies brokers that a config has changed."""

    PARENT: ClassVar[str] = "/config/changes"
    PREFIX: ClassVar[str] = "/config/changes/config_change_"

    @staticmethod
    def encode(entity_path: str) -> bytes:
        """For an entity such as `topics/orders` or `users/U/clients/C`, sanitized."""
        return encode_json({"version": 2, "entity_path": entity_path})

    @classmethod
    def decode(cls, data: bytes | None) -> str:
        """The entity's path; version 1 has type and name in separate fields."""
        fields = decode_json(cls.PARENT, data)
        with reading(cls.PARENT, data):
            if fields["version"] == 1:
                return f"{fields['entity_type']}/{fields['entity_name']}"
            return str(fields["entity_path"])
