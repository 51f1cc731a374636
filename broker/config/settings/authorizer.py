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

_OWN_SESSION: Final = no_effect("the authorizer uses the broker's own session with ZooKeeper")


class AuthorizerSettings(Settings):
    """What the authorizer reads from the broker's file."""

    super_users: str = string("super.users", default="", importance=HIGH)
    """Principals that may do everything, `User:name`, separated by semicolons."""
    allow_everyone_if_no_acl_found: bool = boolean("allow.everyone.if.no.acl.found", default=False)
    """Whether every principal may use a resource that has no ACL."""
    authorizer_zookeeper_url: str | None = string(
        "authorizer.zookeeper.url", default=None, importance=LOW, effect=_OWN_SESSION
    )
    """The ZooKeeper ensemble that holds the ACLs; `zookeeper.connect` if not set."""
    authorizer_zookeeper_connection_timeout_ms: int | None = integer(
        "authorizer.zookeeper.connection.timeout.ms",
        default=None,
        importance=LOW,
        effect=_OWN_SESSION,
    )
    """How long connecting to that ensemble may take."""
    authorizer_zookeeper_session_timeout_ms: int | None = integer(
        "authorizer.zookeeper.session.timeout.ms",
        default=None,
        importance=LOW,
        effect=_OWN_SESSION,
    )
    """The authorizer's session timeout with that ensemble."""
    authorizer_zookeeper_max_in_flight_requests: int | None = integer(
        "authorizer.zookeeper.max.in.flight.requests",
        default=None,
        importance=LOW,
        effect=_OWN_SESSION,
    )
    """The maximum number of unanswered requests to that ensemble."""
    authorizer_audit_json_path: str | None = string(
        "authorizer.audit.json.path", default=None, importance=LOW
    )
    """A file to which decisions are appended as JSON, one per line; not in Kafka. Denied accesses
    only, unless the level of logger `kafka.authorizer.logger.json` is set to DEBUG."""
