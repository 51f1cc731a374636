"""Options of `kctl acls add` and `remove`, and the rules they describe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from broker.security.acls import WILDCARD, AclOperation, AclPermissionType, ResourceType
from kctl.cli.arguments.acls import (
    KafkaResources,
    PatternWord,
    parse_operation,
    parse_principal,
    patterns_of,
    require_supported,
    resources_of,
)
from kctl.cli.errors import CliError, ExitStatus
from kctl.model.acls import Acl, AclFilter, Resource, ResourcePattern
from kctl.plans.acls.roles import CLUSTER, consumer_operations, producer_operations, rules

Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        "--allow-principal",
        metavar="PRINCIPAL",
        help="Allow this principal: User:alice, or alice for short; User:* is everyone; can be "
        "repeated.",
    ),
]
OnlyAllow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        "--allow-principal",
        metavar="PRINCIPAL",
        help="Only ALLOW rules of this principal; can be repeated.",
    ),
]
OnlyDeny = Annotated[
    list[str] | None,
    typer.Option(
        "--deny",
        "--deny-principal",
        metavar="PRINCIPAL",
        help="Only DENY rules of this principal; can be repeated.",
    ),
]
Deny = Annotated[
    list[str] | None,
    typer.Option(
        "--deny",
        "--deny-principal",
        metavar="PRINCIPAL",
        help="Deny this principal, whatever is allowed elsewhere; can be repeated.",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="ADDRESS", help="Allow only from this IP address; can be repeated."
    ),
]
DenyHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--deny-host", metavar="ADDRESS", help="Deny only from this IP address; can be repeated."
    ),
]
OnlyAllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="ADDRESS",
        help="Only ALLOW rules for this IP address; can be repeated.",
    ),
]
OnlyDenyHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--deny-host",
        metavar="ADDRESS",
        help="Only DENY rules for this IP address; can be repeated.",
    ),
]
Producer = Annotated[
    bool,
    typer.Option(
        "--producer",
        help="Add the rules that a producer needs: WRITE, DESCRIBE and CREATE on topics, WRITE "
        "and DESCRIBE on transactional ids.",
    ),
]
OnlyProducer = Annotated[
    bool,
    typer.Option("--producer", help="Remove the rules that `kctl acls add --producer` adds."),
]
Consumer = Annotated[
    bool,
    typer.Option(
        "--consumer",
        help="Add the rules that a consumer needs: READ and DESCRIBE on topics, READ on groups.",
    ),
]
OnlyConsumer = Annotated[
    bool,
    typer.Option("--consumer", help="Remove the rules that `kctl acls add --consumer` adds."),
]
Idempotent = Annotated[
    bool,
    typer.Option(
        "--idempotent", help="With --producer: IDEMPOTENT_WRITE on the cluster (before Kafka 3.0)."
    ),
]


@dataclass(frozen=True)
class RuleOptions:
    """The options of one command line; see the option types above."""

    resources: tuple[Resource, ...]
    pattern: PatternWord
    operations: tuple[AclOperation, ...]
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    allow_hosts: tuple[str, ...]
    deny_hosts: tuple[str, ...]
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    @property
    def has_role(self) -> bool:
        """Whether the operations follow from a role."""
        return self.producer or self.consumer

    def check(self) -> None:
        """CliError for combinations that kafka-acls refuses too."""
        kinds = {one.type for one in self.resources}
        if self.has_role and (self.operations or self.deny or self.deny_hosts):
            raise _usage(
                "--producer and --consumer determine the operations, and only allow",
                "omit --operation, --deny and --deny-host",
            )
        if self.idempotent and not self.producer:
            raise _usage("--idempotent requires --producer", "add --producer")
        if self.producer and ResourceType.TOPIC not in kinds:
            raise _usage("--producer requires a topic", "e.g. topic:orders")
        if self.consumer and not {ResourceType.TOPIC, ResourceType.GROUP} <= kinds:
            raise _usage("--consumer requires a topic and a group", "e.g. topic:orders group:g")
        for kind in kinds:
            require_supported(kind, self.operations)

    def acls(self) -> list[Acl]:
        """The rules; CliError if the options do not determine any."""
        if not self.resources:
            raise _usage("no resource specified", "e.g. topic:orders, group:billing or cluster")
        if not (self.allow or self.deny):
            raise _usage("no principal specified", "use --allow or --deny, e.g. --allow alice")
        found: dict[Acl, None] = {}
        for pattern, operations in self._operations():
            allowed = rules(
                [pattern],
                self.allow,
                self.allow_hosts or (WILDCARD,),
                operations,
                AclPermissionType.ALLOW,
            )
            denied = rules(
                [pattern],
                self.deny,
                self.deny_hosts or (WILDCARD,),
                operations,
                AclPermissionType.DENY,
            )
            found |= dict.fromkeys([*allowed, *denied])
        return list(found)

    def _operations(self) -> list[tuple[ResourcePattern, Sequence[AclOperation]]]:
        patterns = patterns_of(self.resources, self.pattern)
        if not self.has_role:
            return [(pattern, self.operations or (AclOperation.ALL,)) for pattern in patterns]
        producer = producer_operations(patterns, idempotent=self.idempotent)
        return [
            *(producer if self.producer else ()),
            *(consumer_operations(patterns) if self.consumer else ()),
        ]

    def filters(self) -> list[AclFilter]:
        """Filters for the resources; the one for everything if none was named."""
        return [
            AclFilter(
                one.type,
                one.name,
                CLUSTER.pattern_type if one.type is ResourceType.CLUSTER else self.pattern.type,
            )
            for one in self.resources
        ] or [AclFilter()]

    def selects(self, acl: Acl) -> bool:
        """Whether an ACL of these resources has one of the principals, hosts and operations."""
        if self.operations and acl.operation not in self.operations:
            return False
        if not (self.allow or self.deny or self.allow_hosts or self.deny_hosts):
            return True
        is_allow = acl.permission is AclPermissionType.ALLOW
        principals, hosts = (
            (self.allow, self.allow_hosts) if is_allow else (self.deny, self.deny_hosts)
        )
        if not (principals or hosts):
            return False
        return (not principals or acl.principal in principals) and (not hosts or acl.host in hosts)


def rule_options(
    texts: Sequence[str] | None,
    kafka: KafkaResources,
    pattern: PatternWord,
    operations: Sequence[str] | None,
    *,
    allow: Sequence[str] | None = None,
    deny: Sequence[str] | None = None,
    allow_hosts: Sequence[str] | None = None,
    deny_hosts: Sequence[str] | None = None,
    producer: bool = False,
    consumer: bool = False,
    idempotent: bool = False,
) -> RuleOptions:
    """Parse and check the options."""
    found = RuleOptions(
        tuple(resources_of(texts, kafka)),
        pattern,
        tuple(dict.fromkeys(map(parse_operation, operations or ()))),
        tuple(dict.fromkeys(map(parse_principal, allow or ()))),
        tuple(dict.fromkeys(map(parse_principal, deny or ()))),
        tuple(dict.fromkeys(map(str.strip, allow_hosts or ()))),
        tuple(dict.fromkeys(map(str.strip, deny_hosts or ()))),
        producer,
        consumer,
        idempotent,
    )
    found.check()
    return found


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
