"""Decisions by ACLs, and findings about ACLs: pure functions."""

import random

import pytest

from broker.security.acls import (
    SUPPORTED_OPERATIONS,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kctl.model.acl_decisions import AuthorizerSettings, Problem, Reason, Request, Step
from kctl.model.acls import Acl, Resource, ResourcePattern
from kctl.plans.acls.audit import audit
from kctl.plans.acls.explain import decide, remedies

O, TOPIC = AclOperation, ResourceType.TOPIC  # noqa: E741
PREFIXED = PatternType.PREFIXED
STRICT = AuthorizerSettings()


def rule(
    operation: AclOperation,
    name: str = "orders",
    principal: str = "User:alice",
    *,
    deny: bool = False,
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    kind: ResourceType = TOPIC,
) -> Acl:
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    return Acl(ResourcePattern(kind, name, pattern), principal, host, operation, permission)


def write_orders(host: str | None = None) -> Request:
    return Request("User:alice", O.WRITE, Resource(TOPIC, "orders"), host)


@pytest.mark.parametrize(
    ("acls", "settings", "allowed", "reason"),
    [
        ([], STRICT, False, Reason.NO_ACL_DENIED),
        ([], AuthorizerSettings(allow_everyone=True), True, Reason.NO_ACL_ALLOWED),
        ([], AuthorizerSettings(frozenset({"User:alice"})), True, Reason.SUPER_USER),
        ([rule(O.WRITE)], STRICT, True, Reason.ALLOW),
        ([rule(O.ALL)], STRICT, True, Reason.ALLOW),
        ([rule(O.READ)], STRICT, False, Reason.NO_ALLOW),
        ([rule(O.READ)], AuthorizerSettings(allow_everyone=True), False, Reason.NO_ALLOW),
        ([rule(O.WRITE, "ord", pattern=PREFIXED)], STRICT, True, Reason.ALLOW),
        ([rule(O.WRITE, "*", "User:*")], STRICT, True, Reason.ALLOW),
        ([rule(O.WRITE, principal="User:*"), rule(O.ALL, deny=True)], STRICT, False, Reason.DENY),
        ([rule(O.WRITE), rule(O.READ, deny=True)], STRICT, True, Reason.ALLOW),
        ([rule(O.WRITE, host="10.0.0.1")], STRICT, False, Reason.NO_ALLOW),
        ([rule(O.WRITE, kind=ResourceType.GROUP)], STRICT, False, Reason.NO_ACL_DENIED),
    ],
)
def test_decision_follows_the_rules_of_the_authorizer(
    acls: list[Acl], settings: AuthorizerSettings, allowed: bool, reason: Reason
) -> None:
    found = decide(acls, write_orders(), settings)
    assert (found.allowed, found.reason) == (allowed, reason)


def test_describe_is_implied_by_other_operations_but_not_denied_by_their_denial() -> None:
    describe = Request("User:alice", O.DESCRIBE, Resource(TOPIC, "orders"))
    for operation in (O.READ, O.WRITE, O.DELETE, O.ALTER):
        assert decide([rule(operation)], describe, STRICT).reason is Reason.IMPLIED
        both = [rule(operation, deny=True), rule(O.ALL)]
        assert decide(both, describe, STRICT).allowed
    assert not decide([rule(O.ALTER_CONFIGS)], describe, STRICT).allowed


def test_rule_that_decides_is_the_most_specific_one() -> None:
    general = rule(O.ALL, "*", "User:*")
    prefix = rule(O.WRITE, "ord", pattern=PREFIXED)
    exact = rule(O.WRITE)
    found = decide([general, prefix, exact], write_orders(), STRICT)
    assert found.allowing == (exact, prefix, general)
    assert found.rule == exact


SITUATIONS = [
    [],
    [rule(O.READ)],
    [rule(O.WRITE), rule(O.ALL)],
    [rule(O.WRITE, "*", "User:*")],
    [rule(O.WRITE, "o", pattern=PREFIXED)],
    [rule(O.WRITE, deny=True), rule(O.ALL, "*", "User:*", deny=True)],
    [rule(O.WRITE, deny=True), rule(O.ALL)],
]


@pytest.mark.parametrize("acls", SITUATIONS)
@pytest.mark.parametrize("host", [None, "10.0.0.1"])
def test_remedies_reverse_the_decision(acls: list[Acl], host: str | None) -> None:
    before = decide(acls, write_orders(host), STRICT)
    steps = remedies(before)
    assert steps
    after = set(acls)
    for step in steps:
        assert step.acl is not None
        after = after | {step.acl} if step.step is Step.ADD else after - {step.acl}
    assert decide(after, write_orders(host), STRICT).allowed is not before.allowed


def test_remedies_do_not_touch_rules_of_other_users() -> None:
    found = decide([rule(O.WRITE, "*", "User:*")], write_orders(), STRICT)
    (step,) = remedies(found)
    assert (step.step, step.acl) == (Step.ADD, rule(O.WRITE, deny=True))


def problems(*acls: Acl, topics: tuple[str, ...] = ("orders",)) -> list[tuple[Problem, Acl]]:
    return [(found.problem, found.acl) for found in audit(acls, topics)]


def test_healthy_rules_have_no_findings() -> None:
    deny = rule(O.DELETE, principal="User:*", deny=True)
    assert problems(rule(O.WRITE), rule(O.DESCRIBE), rule(O.READ, host="10.0.0.1"), deny) == []


@pytest.mark.parametrize(
    "general",
    [
        rule(O.ALL),
        rule(O.WRITE, principal="User:*"),
        rule(O.WRITE, "*"),
        rule(O.WRITE, "ord", pattern=PREFIXED),
    ],
)
def test_rule_covered_by_a_more_general_one_is_shadowed(general: Acl) -> None:
    special = rule(O.WRITE)
    assert (Problem.SHADOWED, special) in problems(special, general)
    assert (Problem.SHADOWED, general) not in problems(special, general)
    hosted = rule(O.WRITE, host="10.0.0.1")
    assert (Problem.SHADOWED, hosted) in problems(hosted, general)


def test_longer_prefix_is_shadowed_by_a_shorter_one_but_not_by_a_name() -> None:
    long, short = (rule(O.WRITE, name, pattern=PREFIXED) for name in ("ord", "o"))
    assert problems(long, short) == [(Problem.SHADOWED, long)]
    assert problems(rule(O.WRITE, "ord", pattern=PREFIXED), rule(O.WRITE, "ord"), topics=("ord",))[
        0
    ] == (Problem.SHADOWED, rule(O.WRITE, "ord"))


def test_both_names_of_the_cluster_are_duplicates_reported_once() -> None:
    one, other = (rule(O.ALTER, name, kind=ResourceType.CLUSTER) for name in ("kafka-cluster", "*"))
    assert problems(one, other) == [(Problem.DUPLICATE, one)]


def test_allow_below_a_deny_is_dominated_and_what_is_left_is_named() -> None:
    allow = rule(O.READ)
    (finding,) = audit([allow, rule(O.READ, "*", deny=True)], ["orders"])
    assert (finding.problem, finding.acl) == (Problem.DENY_DOMINATED, allow)
    assert "DESCRIBE" in finding.because
    (finding,) = audit([allow, rule(O.ALL, "o", deny=True, pattern=PREFIXED)], ["orders"])
    assert finding.because == "a DENY covers it"


def test_deny_for_one_host_does_not_dominate() -> None:
    assert problems(rule(O.READ), rule(O.READ, deny=True, host="10.0.0.1")) == []


def test_wildcards_of_allow_are_reported() -> None:
    assert problems(rule(O.READ, principal="User:*"))[0][0] is Problem.WILDCARD
    assert problems(rule(O.ALL, "*"))[0][0] is Problem.WILDCARD
    assert problems(rule(O.ALL, "*", deny=True)) == []
    assert problems(rule(O.READ, "*")) == []


def test_rules_without_effect_are_reported() -> None:
    missing = [rule(O.READ, "gone"), rule(O.READ, "gon", pattern=PREFIXED)]
    found = [problem for problem, _ in problems(*missing)]
    assert found == [Problem.MISSING_TOPIC, Problem.SHADOWED, Problem.MISSING_TOPIC]
    (network,) = problems(rule(O.READ, host="10.0.0.0/8"))
    assert network[0] is Problem.INVALID_HOST
    (unused,) = problems(rule(O.WRITE, "g", kind=ResourceType.GROUP))
    assert unused[0] is Problem.UNUSED_OPERATION


def test_rules_called_useless_change_no_decision() -> None:
    """Oracle: the decisions themselves, for random rules, with and without a useless rule."""
    rng = random.Random(22)
    names, users = ("a", "ab", "abc", "b"), ("User:x", "User:y")
    useless = {Problem.SHADOWED, Problem.DUPLICATE}
    found = 0
    for _ in range(300):
        acls = {
            rule(
                rng.choice([*SUPPORTED_OPERATIONS[TOPIC], O.ALL]),
                rng.choice((*names, "*")),
                rng.choice((*users, "User:*")),
                deny=rng.random() < 0.3,
                host=rng.choice(("*", "*", "1.1.1.1")),
                pattern=rng.choice((PatternType.LITERAL, PREFIXED)),
            )
            for _ in range(6)
        }
        acls = {a for a in acls if a.pattern.name != "*" or a.pattern.pattern_type is not PREFIXED}
        for finding in audit(acls, names):
            if finding.problem not in useless:
                continue
            found += 1
            rest = acls - {finding.acl}
            for request in requests(names, users):
                assert (
                    decide(acls, request, STRICT).allowed == decide(rest, request, STRICT).allowed
                ), (finding, request)
    assert found > 100


def requests(names: tuple[str, ...], users: tuple[str, ...]) -> list[Request]:
    return [
        Request(user, operation, Resource(TOPIC, name), host)
        for user in users
        for operation in SUPPORTED_OPERATIONS[TOPIC]
        for name in names
        for host in (None, "1.1.1.1")
    ]


def test_audit_of_ten_thousand_rules_compares_only_candidates() -> None:
    acls = [rule(O.READ, f"topic-{n}", f"User:u{n % 97}") for n in range(10_000)]
    assert audit(acls, [f"topic-{n}" for n in range(10_000)]) == []
