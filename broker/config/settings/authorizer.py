"""Settings of Kafka's AclAuthorizer.

They are not broker settings: Kafka passes them to the authorizer as they are in the file, and
DescribeConfigs shows them like any unknown key. Therefore BrokerConfig does not contain them.
"""

from typing import Final

from broker.config.definitions import (
    HIGH,
    LOW,
    Settings,
    boolean,
    integer,
    no_effect,
    string,
)

_NO_AUTHORIZER: Final = no_effect("this broker has no authorizer")


class AuthorizerSettings(Settings):
    """What AclAuthorizer reads from the broker's file."""

    super_users: str = string("super.users", default="", importance=HIGH, effect=_NO_AUTHORIZER)
    """Principals that may do everything, `User:name`, separated by semicolons."""
    allow_everyone_if_no_acl_found: bool = boolean(
        "allow.everyone.if.no.acl.found", default=False, effect=_NO_AUTHORIZER
    )
    """Whether every principal may use a resource that has no ACL."""
    authorizer_zookeeper_url: str | None = string(
        "authorizer.zookeeper.url", default=None, importance=LOW, effect=_NO_AUTHORIZER
    )
    """The ZooKeeper ensemble that holds the ACLs; `zookeeper.connect` if not set."""
    authorizer_zookeeper_connection_timeout_ms: int | None = integer(
        "authorizer.zookeeper.connection.timeout.ms",
        default=None,
        importance=LOW,
        effect=_NO_AUTHORIZER,
    )
    """How long connecting to that ensemble may take."""
    authorizer_zookeeper_session_timeout_ms: int | None = integer(
        "authorizer.zookeeper.session.timeout.ms",
        default=None,
        importance=LOW,
        effect=_NO_AUTHORIZER,
    )
    """The authorizer's session timeout with that ensemble."""
    authorizer_zookeeper_max_in_flight_requests: int | None = integer(
        "authorizer.zookeeper.max.in.flight.requests",
        default=None,
        importance=LOW,
        effect=_NO_AUTHORIZER,
    )
    """The maximum number of unanswered requests to that ensemble."""
