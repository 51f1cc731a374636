"""The nodes of a cluster: which ones a broker creates at startup, and which ones are Kafka's."""

from broker.metadata.znodes.acls import (
    EXTENDED_ACLS_PATH,
    LITERAL_ACLS_PATH,
    PATTERN_TYPES,
    RESOURCE_TYPES,
    AclChangeZnode,
    resource_type_path,
)
from broker.metadata.znodes.admin import ADMIN_PATH, DELETE_TOPICS_PATH
from broker.metadata.znodes.brokers import BROKER_IDS_PATH, BROKER_SEQUENCE_ID_PATH, BROKERS_PATH
from broker.metadata.znodes.cluster import (
    CLUSTER_PATH,
    FeatureZnode,
    ProducerIdBlockZnode,
)
from broker.metadata.znodes.configs import CONFIG_PATH, CONFIG_TYPES, ConfigChangeZnode
from broker.metadata.znodes.consumers import CONSUMERS_PATH
from broker.metadata.znodes.controller import ControllerEpochZnode, ControllerZnode
from broker.metadata.znodes.notifications import IsrChangeZnode, LogDirEventZnode
from broker.metadata.znodes.tokens import TOKENS_PATH, TokenChangeZnode
from broker.metadata.znodes.topics import TOPICS_PATH

DELEGATION_TOKEN_PATH = "/delegation_token"  # noqa: S105 - a path
MIGRATION_PATH = "/migration"

TOP_LEVEL_PATHS = (
    ADMIN_PATH,
    BROKERS_PATH,
    CLUSTER_PATH,
    CONFIG_PATH,
    CONSUMERS_PATH,
    ControllerZnode.PATH,
    ControllerEpochZnode.PATH,
    DELEGATION_TOKEN_PATH,
    FeatureZnode.PATH,
    IsrChangeZnode.PARENT,
    LITERAL_ACLS_PATH,
    AclChangeZnode.LITERAL_PARENT,
    EXTENDED_ACLS_PATH,
    AclChangeZnode.EXTENDED_PARENT,
    ProducerIdBlockZnode.PATH,
    LogDirEventZnode.PARENT,
    MIGRATION_PATH,
)
"""All nodes of Kafka are these or below them; other programs may share the ensemble."""

CHANGE_NOTIFICATION_PARENTS = (
    ConfigChangeZnode.PARENT,
    AclChangeZnode.LITERAL_PARENT,
    AclChangeZnode.EXTENDED_PARENT,
    TokenChangeZnode.PARENT,
    IsrChangeZnode.PARENT,
    LogDirEventZnode.PARENT,
)
"""Children of these notify running brokers; a broker that starts reads everything anyway."""


def persistent_paths() -> list[str]:
    """Nodes that a broker creates at startup if they are missing, without data."""
    return [
        CONSUMERS_PATH,
        BROKER_IDS_PATH,
        TOPICS_PATH,
        ConfigChangeZnode.PARENT,
        DELETE_TOPICS_PATH,
        BROKER_SEQUENCE_ID_PATH,
        IsrChangeZnode.PARENT,
        ProducerIdBlockZnode.PATH,
        LogDirEventZnode.PARENT,
        *(f"{CONFIG_PATH}/{config_type}" for config_type in CONFIG_TYPES),
    ]


def authorizer_paths() -> list[str]:
    """Nodes that the authorizer creates at startup if they are missing."""
    return [
        *(resource_type_path(kind, like) for like in PATTERN_TYPES for kind in RESOURCE_TYPES),
        AclChangeZnode.LITERAL_PARENT,
        AclChangeZnode.EXTENDED_PARENT,
    ]


def delegation_token_paths() -> list[str]:
    """Nodes that are created at startup for delegation tokens if they are missing."""
    return [TOKENS_PATH, TokenChangeZnode.PARENT]
