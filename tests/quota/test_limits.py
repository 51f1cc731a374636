"""Which quota applies, and which clients share it."""

import pytest

from broker.quota.limits import DEFAULT, Applied, Name, QuotaLimits

LEVELS: list[tuple[tuple[Name, Name], tuple[str | None, str | None]]] = [
    (("alice", "c1"), ("alice", "c1")),
    (("alice", DEFAULT), ("alice", "c1")),
    (("alice", None), ("alice", None)),
    ((DEFAULT, "c1"), ("alice", "c1")),
    ((DEFAULT, DEFAULT), ("alice", "c1")),
    ((DEFAULT, None), ("alice", None)),
    ((None, "c1"), (None, "c1")),
    ((None, DEFAULT), (None, "c1")),
]
"""Entities in the order of their precedence, with the key that clients share."""


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_first_of_the_quotas_applies(first: int) -> None:
    limits = QuotaLimits()
    for limit, ((user, client_id), _) in enumerate(LEVELS):
        if limit >= first:
            limits.update(user, client_id, float(limit))
    assert limits.find("alice", "c1") == Applied(LEVELS[first][1], float(first))


def test_quota_of_others_does_not_apply() -> None:
    limits = QuotaLimits()
    limits.update("bob", None, 1.0)
    limits.update(None, "c2", 1.0)
    limits.update("alice", "c2", 1.0)
    assert limits.find("alice", "c1") is None


def test_user_whose_name_looks_like_the_default_is_a_user() -> None:
    limits = QuotaLimits()
    limits.update(DEFAULT, None, 5.0)
    limits.update("<default>", None, 7.0)
    assert limits.find("<default>", "") == Applied(("<default>", None), 7.0)
    assert limits.find("alice", "") == Applied(("alice", None), 5.0)


def test_removed_quota_does_not_apply() -> None:
    limits = QuotaLimits()
    limits.update("alice", None, 1.0)
    limits.update("alice", None, None)
    assert limits.find("alice", "") is None
    assert not limits
