"""Decisions of AclAuthorizer; the same as in Kafka's AclAuthorizerTest."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.acls import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from broker.security.audit import TRACE, Action, log_decision, logger
from broker.security.authorizer import AclAuthorizer, Client, Decision
from broker.security.principal import KafkaPrincipal

OP = AclOperation
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC = ResourceType.TOPIC
ALICE, BOB = (Client(KafkaPrincipal("User", name), "10.0.0.1") for name in ("alice", "bob"))


def entry(
    principal: str = "User:alice",
    operation: AclOperation = OP.READ,
    permission: AclPermissionType = ALLOW,
    host: str = "*",
) -> AccessControlEntry:
    return AccessControlEntry(principal, host, operation, permission)


def topics(name: str, pattern_type: PatternType = LITERAL) -> ResourcePattern:
    return ResourcePattern(TOPIC, name, pattern_type)


def authorizer(*acls: tuple[ResourcePattern, AccessControlEntry], **options: bool) -> AclAuthorizer:
    made = AclAuthorizer(["User:admin"], allow_everyone=options.get("allow_everyone", False))
    for pattern, acl in acls:
        made.update(pattern, [*made.acls.entries(pattern), acl])
    return made


def may(made: AclAuthorizer, operation: AclOperation, name: str, client: Client = ALICE) -> bool:
    return made.authorize(client, operation, TOPIC, name).is_allowed


def test_nothing_is_allowed_without_an_acl() -> None:
    assert not may(authorizer(), OP.READ, "orders")


def test_everyone_is_allowed_if_no_acl_applies_and_the_setting_says_so() -> None:
    made = authorizer((topics("orders"), entry("User:bob")), allow_everyone=True)
    assert may(made, OP.READ, "other")
    assert not may(made, OP.READ, "orders")


def test_super_user_is_allowed_what_is_denied_to_all() -> None:
    made = authorizer((topics("*"), entry("User:*", OP.ALL, DENY)))
    admin = Client(KafkaPrincipal("User", "admin"), "10.0.0.9")
    assert may(made, OP.DELETE, "orders", admin)
    assert made.authorize_by_resource_type(admin, OP.WRITE, TOPIC).is_allowed


def test_super_user_is_recognized_after_logging_in_with_a_token() -> None:
    admin = Client(KafkaPrincipal("User", "admin", is_token_authenticated=True), "10.0.0.9")
    assert may(authorizer(), OP.DELETE, "orders", admin)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (topics("orders"), "orders", "orders-2"),
        (topics("*"), "orders", None),
        (topics("ord", PREFIXED), "orders", "or"),
        (topics("orders", PREFIXED), "orders", "order"),
    ],
)
def test_pattern_applies(pattern: ResourcePattern, matching: str, other: str | None) -> None:
    made = authorizer((pattern, entry()))
    assert may(made, OP.READ, matching)
    assert other is None or not may(made, OP.READ, other)
    assert not made.authorize(ALICE, OP.READ, ResourceType.GROUP, matching).is_allowed


def test_wildcard_is_not_a_prefix() -> None:
    made = authorizer((topics("*", PREFIXED), entry()))
    assert not may(made, OP.READ, "orders")
    assert may(made, OP.READ, "*orders")


@pytest.mark.parametrize("deny", [topics("orders"), topics("*"), topics("o", PREFIXED)])
def test_deny_wins_over_any_allow(deny: ResourcePattern) -> None:
    made = authorizer((topics("orders"), entry()), (deny, entry("User:*", OP.ALL, DENY)))
    assert not may(made, OP.READ, "orders")


def test_host_and_principal_must_match() -> None:
    made = authorizer((topics("orders"), entry(host="10.0.0.1")))
    assert may(made, OP.READ, "orders")
    assert not may(made, OP.READ, "orders", ALICE._replace(host="10.0.0.2"))
    assert not may(made, OP.READ, "orders", BOB)
    assert not may(made, OP.READ, "orders", Client(KafkaPrincipal("Group", "alice"), "10.0.0.1"))


@pytest.mark.parametrize("implying", [OP.READ, OP.WRITE, OP.DELETE, OP.ALTER, OP.ALL])
def test_allow_implies_describe(implying: AclOperation) -> None:
    assert may(authorizer((topics("orders"), entry(operation=implying))), OP.DESCRIBE, "orders")


def test_deny_implies_nothing() -> None:
    made = authorizer(
        (topics("orders"), entry(operation=OP.DESCRIBE)),
        (topics("orders"), entry(operation=OP.READ, permission=DENY)),
    )
    assert may(made, OP.DESCRIBE, "orders")


def test_alter_configs_implies_describe_configs_and_not_the_reverse() -> None:
    made = authorizer((topics("orders"), entry(operation=OP.ALTER_CONFIGS)))
    assert may(made, OP.DESCRIBE_CONFIGS, "orders")
    assert not may(made, OP.DESCRIBE, "orders")
    made = authorizer((topics("orders"), entry(operation=OP.DESCRIBE_CONFIGS)))
    assert not may(made, OP.ALTER_CONFIGS, "orders")


def test_decision_changes_with_the_acls() -> None:
    made = authorizer()
    assert not may(made, OP.READ, "orders")
    made.update(topics("orders"), [entry()])
    assert may(made, OP.READ, "orders")
    made.update(topics("orders"), [])
    assert not may(made, OP.READ, "orders")


def test_topics_known_to_be_allowed_are_forgotten_with_any_change_of_acls() -> None:
    made = authorizer((topics("orders"), entry()), (topics("bills"), entry()))
    assert may(made, OP.READ, "orders")
    assert not may(made, OP.READ, "unknown")
    assert list(made.allowed_topics.values()) == [{"orders"}]
    made.update(topics("bills"), [])
    assert not made.allowed_topics


class TestAnyResource:
    """authorizeByResourceType (KIP-679)."""

    def writes(self, *acls: tuple[ResourcePattern, AclPermissionType], **options: bool) -> bool:
        made = authorizer(
            *((pattern, entry(operation=OP.WRITE, permission=kind)) for pattern, kind in acls),
            **options,
        )
        return made.authorize_by_resource_type(ALICE, OP.WRITE, TOPIC).is_allowed

    def test_one_allowed_resource_is_enough(self) -> None:
        assert not self.writes()
        assert self.writes((topics("orders"), ALLOW))
        assert self.writes((topics("ord", PREFIXED), ALLOW))

    def test_wildcard_deny_denies_everything(self) -> None:
        deny = (topics("*"), DENY)
        assert not self.writes((topics("orders"), ALLOW), deny)
        assert not self.writes(deny, allow_everyone=True)

    def test_dominated_allow_does_not_count(self) -> None:
        assert not self.writes((topics("orders"), ALLOW), (topics("orders"), DENY))
        assert not self.writes((topics("orders"), ALLOW), (topics("or", PREFIXED), DENY))
        assert not self.writes((topics("ord", PREFIXED), ALLOW), (topics("or", PREFIXED), DENY))

    def test_allow_beyond_a_deny_counts(self) -> None:
        assert self.writes((topics("or", PREFIXED), ALLOW), (topics("ord", PREFIXED), DENY))
        assert self.writes((topics("*"), ALLOW), (topics("orders"), DENY))
        assert self.writes((topics("or", PREFIXED), ALLOW), (topics("or"), DENY))

    def test_implied_operations_do_not_count(self) -> None:
        made = authorizer((topics("orders"), entry(operation=OP.WRITE)))
        assert not made.authorize_by_resource_type(ALICE, OP.DESCRIBE, TOPIC).is_allowed


_NAMES = st.sampled_from(["a", "ab", "abc", "b", "*"])
_ACLS = st.lists(
    st.tuples(
        st.builds(topics, _NAMES, st.sampled_from([LITERAL, PREFIXED])),
        st.builds(
            entry,
            st.sampled_from(["User:alice", "User:*", "User:bob"]),
            st.sampled_from([OP.READ, OP.WRITE, OP.ALL, OP.DESCRIBE]),
            st.sampled_from([ALLOW, DENY]),
            st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
        ),
    ),
    max_size=12,
)


@given(_ACLS, _NAMES, st.sampled_from([OP.READ, OP.DESCRIBE]))
def test_decision_is_that_of_a_scan_of_all_acls(
    acls: list[tuple[ResourcePattern, AccessControlEntry]], name: str, operation: AclOperation
) -> None:
    def applies(pattern: ResourcePattern) -> bool:
        if pattern.pattern_type is PREFIXED:
            return name.startswith(pattern.name)
        return pattern.name in (name, "*")

    concerned = [
        acl
        for pattern, acl in acls
        if applies(pattern)
        and acl.principal in ("User:alice", "User:*")
        and acl.host in ("*", "10.0.0.1")
    ]
    implying = (OP.READ, OP.WRITE, OP.DESCRIBE) if operation is OP.DESCRIBE else (operation,)
    denied = any(
        a.permission_type is DENY and a.operation in (operation, OP.ALL) for a in concerned
    )
    allowed = any(
        a.permission_type is ALLOW and a.operation in (*implying, OP.ALL) for a in concerned
    )
    assert may(authorizer(*acls), operation, name) == (allowed and not denied)


class TestAuditLog:
    @pytest.fixture(autouse=True)
    def _everything_is_logged(self, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
        with caplog.at_level(TRACE, logger.name):
            yield

    def last(
        self, caplog: pytest.LogCaptureFixture, action: Action, decision: Decision
    ) -> tuple[int, str]:
        log_decision(ALICE, action, decision, "Produce", "client-1")
        record = self.records(caplog)[-1]
        return record.levelno, record.getMessage()

    def records(self, caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == logger.name]

    def test_denied_is_info_in_kafkas_words(self, caplog: pytest.LogCaptureFixture) -> None:
        action = Action(OP.WRITE, TOPIC, "orders", 3)
        assert self.last(caplog, action, Decision(False, "default")) == (
            logging.INFO,
            "Principal = User:alice is Denied Operation = Write from host = 10.0.0.1 on resource = "
            "Topic:LITERAL:orders for request = Produce with resourceRefCount = 3",
        )

    def test_allowed_is_debug_and_names_the_acl(self, caplog: pytest.LogCaptureFixture) -> None:
        action = Action(OP.DESCRIBE_CONFIGS, ResourceType.TRANSACTIONAL_ID, "x")
        level, line = self.last(caplog, action, Decision(True, "acl", entry()))
        assert level == logging.DEBUG
        assert "is Allowed Operation = DescribeConfigs" in line
        assert "TransactionalId:LITERAL:x" in line
        reason = self.records(caplog)[-2].getMessage()
        assert reason.endswith(f"from host = 10.0.0.1 is ALLOW based on acl = {entry()}")
        assert str(entry()) == (
            "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"
        )

    def test_filters_and_authorized_operations_are_trace(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        quiet = Action(OP.READ, TOPIC, "orders", 1, log_if_allowed=False, log_if_denied=False)
        for is_allowed in (True, False):
            assert self.last(caplog, quiet, Decision(is_allowed, "default"))[0] == TRACE
