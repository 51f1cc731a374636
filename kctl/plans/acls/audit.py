"""Rules that have no effect, or grant more than intended.

Every rule is compared only with those that could cover it (same principal or everyone; the same
name, the wildcard or a prefix of it), so that an audit of thousands of rules takes a moment.
"""

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Sequence

from broker.security.acls import (
    CLUSTER_NAME,
    IMPLIED_BY,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kctl.model.acl_decisions import Finding, Problem
from kctl.model.acls import Acl, ResourcePattern


def audit(acls: Iterable[Acl], topics: Collection[str]) -> list[Finding]:
    """All findings, by rule; `topics` are the names of all topics of the cluster."""
    rules = _Rules(sorted(set(acls), key=lambda acl: acl.sort_key))
    known = frozenset(topics)
    found = []
    for acl in rules.acls:
        found += [*_redundancy(acl, rules), *_wildcards(acl), *_dead(acl, known)]
    return found


class _Rules:
    """The rules, with the index that finds those which could cover a given one."""

    def __init__(self, acls: Sequence[Acl]) -> None:
        self.acls = acls
        self._by_pattern: dict[tuple[ResourcePattern, str], list[Acl]] = {}
        for acl in acls:
            self._by_pattern.setdefault((acl.pattern, acl.principal), []).append(acl)

    def covering(self, acl: Acl) -> Iterator[Acl]:
        """The other rules that apply whenever `acl` does, for whatever operations."""
        for pattern in _covering_patterns(acl.pattern):
            for principal in dict.fromkeys((acl.principal, WILDCARD_PRINCIPAL)):
                for other in self._by_pattern.get((pattern, principal), ()):
                    if other != acl and other.host in (WILDCARD, acl.host):
                        yield other


def _covering_patterns(pattern: ResourcePattern) -> Iterator[ResourcePattern]:
    kind, name = pattern.type, pattern.name
    yield pattern
    if kind is ResourceType.CLUSTER:  # there is one cluster: both names mean it
        yield ResourcePattern(kind, WILDCARD if name == CLUSTER_NAME else CLUSTER_NAME)
        return
    is_everything = pattern == ResourcePattern(kind, WILDCARD)
    if is_everything:
        return
    yield ResourcePattern(kind, WILDCARD)
    is_prefix = pattern.pattern_type is PatternType.PREFIXED
    for length in range(1, len(name) + (not is_prefix)):
        yield ResourcePattern(kind, name[:length], PatternType.PREFIXED)


def _redundancy(acl: Acl, rules: _Rules) -> Iterator[Finding]:
    """At most one finding: what makes the rule useless, worst first."""
    others = list(rules.covering(acl))
    if acl.permission is AclPermissionType.ALLOW:
        for other in others:
            if other.permission is AclPermissionType.DENY and _includes(
                other.operation, acl.operation
            ):
                yield Finding(Problem.DENY_DOMINATED, acl, _left_over(acl, other), other)
                return
    # Operations that another one implies are not reported: every role of kafka-acls adds them.
    for other in others:
        if other.permission is acl.permission and _includes(other.operation, acl.operation):
            is_mutual = acl in rules.covering(other) and _includes(acl.operation, other.operation)
            problem = Problem.DUPLICATE if is_mutual else Problem.SHADOWED
            if is_mutual and other.sort_key > acl.sort_key:
                continue  # reported once, at the later one
            yield Finding(problem, acl, "another rule covers it", other)
            return


def _includes(general: AclOperation, special: AclOperation) -> bool:
    return general in (special, AclOperation.ALL)


def _left_over(acl: Acl, denial: Acl) -> str:
    """Why an ALLOW is useless, and what it allows nevertheless."""
    if denial.operation is AclOperation.ALL:
        return "a DENY covers it"
    implied = [
        operation.name
        for operation, sources in IMPLIED_BY.items()
        if acl.operation in sources and acl.operation is not operation
    ]
    if implied:
        return f"a DENY covers it; only {', '.join(implied)}, which it implies, is still allowed"
    return "a DENY covers it"


def _wildcards(acl: Acl) -> Iterator[Finding]:
    if acl.permission is not AclPermissionType.ALLOW:
        return
    everyone = acl.principal == WILDCARD_PRINCIPAL
    everything = acl.pattern.name == WILDCARD and acl.pattern.type is not ResourceType.CLUSTER
    whole = (
        acl.operation is AclOperation.ALL and acl.pattern.pattern_type is not PatternType.PREFIXED
    )
    if everyone:
        yield Finding(Problem.WILDCARD, acl, "every client has it, anonymous ones included")
    elif everything and whole:
        kind = acl.pattern.type.word
        yield Finding(Problem.WILDCARD, acl, f"every operation on every {kind} is allowed")


def _dead(acl: Acl, topics: frozenset[str]) -> Iterator[Finding]:
    pattern = acl.pattern
    if acl.host != WILDCARD and not _is_address(acl.host):
        because = "hosts are compared as IP addresses; names and networks never match"
        yield Finding(Problem.INVALID_HOST, acl, because)
    supported = SUPPORTED_OPERATIONS.get(pattern.type)
    if supported and acl.operation not in (*supported, AclOperation.ALL):
        because = f"brokers never check {acl.operation.name} on a {pattern.type.word}"
        yield Finding(Problem.UNUSED_OPERATION, acl, because)
    if pattern.type is ResourceType.TOPIC and not _has_topic(pattern, topics):
        is_prefix = pattern.pattern_type is PatternType.PREFIXED
        because = "no topic has a name with this prefix" if is_prefix else "there is no such topic"
        yield Finding(Problem.MISSING_TOPIC, acl, because)


def _has_topic(pattern: ResourcePattern, topics: frozenset[str]) -> bool:
    if pattern.pattern_type is PatternType.PREFIXED:
        return any(topic.startswith(pattern.name) for topic in topics)
    return pattern.name == WILDCARD or pattern.name in topics


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
