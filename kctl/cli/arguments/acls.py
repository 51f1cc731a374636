"""Arguments of `kctl acls`: principals, operations, resources, and the options of kafka-acls."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from broker.security.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    AclOperation,
    PatternType,
    ResourceType,
)
from kctl.cli.arguments.topics import KAFKA_PANEL
from kctl.cli.errors import CliError, ExitStatus
from kctl.model.acls import Resource, ResourcePattern

_TYPES: Final = {kind.word: kind for kind in SUPPORTED_OPERATIONS}
RESOURCE_HELP: Final = (
    "topic:NAME, group:NAME, transactional-id:NAME, delegation-token:ID, user:PRINCIPAL or cluster;"
    " the name * means all of them."
)


class PatternWord(StrEnum):
    """Values of `--pattern`."""

    LITERAL = "literal"
    PREFIXED = "prefixed"
    ANY = "any"
    MATCH = "match"

    @property
    def type(self) -> PatternType:
        """The pattern type in the protocol."""
        return PatternType[self.name]


Resources = Annotated[
    list[str] | None,
    typer.Argument(metavar="RESOURCE…", help=RESOURCE_HELP, show_default=False),
]
Pattern = Annotated[
    PatternWord,
    typer.Option(
        "--pattern",
        "--resource-pattern-type",
        metavar="TYPE",
        help="literal or prefixed. For list and remove also: any (this name, either type), or match"
        " (all ACLs that apply to the name).",
    ),
]
Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation", metavar="OPERATION", help="Operation, such as read; can be repeated."
    ),
]


def kafka_option(name: str, text: str, metavar: str | None = None) -> Any:
    """An option of Kafka's tool, in its own panel of the help."""
    return typer.Option(
        name, help=text, metavar=metavar, show_default=False, rich_help_panel=KAFKA_PANEL
    )


KafkaTopics = Annotated[list[str] | None, kafka_option("--topic", "Same as topic:NAME.", "NAME")]
KafkaGroups = Annotated[list[str] | None, kafka_option("--group", "Same as group:NAME.", "NAME")]
KafkaCluster = Annotated[bool, kafka_option("--cluster", "Same as cluster.")]
KafkaTransactionalIds = Annotated[
    list[str] | None, kafka_option("--transactional-id", "Same as transactional-id:NAME.", "NAME")
]
KafkaTokens = Annotated[
    list[str] | None, kafka_option("--delegation-token", "Same as delegation-token:ID.", "ID")
]
KafkaUsers = Annotated[
    list[str] | None, kafka_option("--user-principal", "Same as user:PRINCIPAL.", "PRINCIPAL")
]


@dataclass(frozen=True)
class KafkaResources:
    """The options by which kafka-acls names resources."""

    topics: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    cluster: bool = False
    transactional_ids: Sequence[str] | None = None
    tokens: Sequence[str] | None = None
    users: Sequence[str] | None = None

    def named(self) -> list[Resource]:
        """The resources, in the order of kafka-acls."""
        kinds = [
            (ResourceType.TOPIC, self.topics),
            (ResourceType.CLUSTER, [CLUSTER_NAME] if self.cluster else []),
            (ResourceType.GROUP, self.groups),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
            (ResourceType.DELEGATION_TOKEN, self.tokens),
            (ResourceType.USER, self.users),
        ]
        return [Resource(kind, name.strip()) for kind, names in kinds for name in names or ()]


def parse_resource(text: str) -> Resource:
    """Parse `topic:orders` or `cluster`; CliError if it is neither."""
    word, colon, name = text.partition(":")
    kind = _TYPES.get(word.lower().replace("_", "-"))
    if kind is ResourceType.CLUSTER and (not colon or name == CLUSTER_NAME):
        return Resource(kind, CLUSTER_NAME)
    if kind is None or not name or kind is ResourceType.CLUSTER:
        raise CliError(
            f"{text!r} is not a resource",
            "use topic:NAME, group:NAME, transactional-id:NAME, delegation-token:ID, "
            "user:PRINCIPAL or cluster",
            ExitStatus.USAGE,
        )
    return Resource(kind, name)


def resources_of(texts: Iterable[str] | None, kafka: KafkaResources) -> list[Resource]:
    """All resources from arguments and options, each once."""
    return list(dict.fromkeys([*map(parse_resource, texts or ()), *kafka.named()]))


def patterns_of(resources: Iterable[Resource], pattern: PatternWord) -> list[ResourcePattern]:
    """The resources as patterns of new ACLs; CliError for `any` and `match`.

    The cluster has one name, so its pattern is always literal.
    """
    if pattern not in (PatternWord.LITERAL, PatternWord.PREFIXED):
        raise CliError(
            f"--pattern {pattern} only selects ACLs",
            "new ACLs are literal or prefixed",
            ExitStatus.USAGE,
        )
    return [
        ResourcePattern(
            one.type,
            one.name,
            PatternType.LITERAL if one.type is ResourceType.CLUSTER else pattern.type,
        )
        for one in resources
    ]


def parse_principal(text: str) -> str:
    """`alice` is `User:alice`; any other type is named."""
    text = text.strip()
    kind, colon, name = text.partition(":")
    if not text or (colon and not (kind and name)):
        raise CliError(f"{text!r} is not a principal", "e.g. User:alice", ExitStatus.USAGE)
    return text if colon else f"User:{text}"


def parse_operation(text: str) -> AclOperation:
    """Parse `write`, `DescribeConfigs` or `describe-configs`; CliError lists the known ones."""
    squeezed = text.strip().lower().replace("-", "").replace("_", "")
    for operation in AclOperation:
        is_choice = operation not in (AclOperation.UNKNOWN, AclOperation.ANY)
        if is_choice and operation.name.lower().replace("_", "") == squeezed:
            return operation
    known = ", ".join(one.name.lower().replace("_", "-") for one in list(AclOperation)[2:])
    raise CliError(f"{text!r} is not an operation", f"expected one of: {known}", ExitStatus.USAGE)


def require_supported(kind: ResourceType, operations: Iterable[AclOperation]) -> None:
    """CliError for an operation that brokers never check on this type of resource."""
    supported = (*SUPPORTED_OPERATIONS[kind], AclOperation.ALL)
    for operation in operations:
        if operation not in supported:
            known = ", ".join(one.name.lower().replace("_", "-") for one in supported)
            raise CliError(
                f"a {kind.word} has no operation {operation.name}",
                f"expected one of: {known}",
                ExitStatus.USAGE,
            )
