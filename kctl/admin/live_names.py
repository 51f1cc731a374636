"""Names for shell completion, fetched within a second or not at all.

They are cached for 30 seconds, so that pressing Tab again is instant.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path

from broker.security.acls import WILDCARD
from kctl.admin.acls import describe_acls
from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.admin.groups import list_groups
from kctl.admin.topics import find_topics
from kctl.admin.users import list_credentials
from kctl.cli.contexts import config_path, read_contexts
from kctl.cli.options import Session
from kctl.model.acls import AclFilter

TIME_LIMIT_S = 1.0
KEPT_S = 30.0


class Kind(StrEnum):
    """Kinds of names."""

    TOPICS = "topics"
    GROUPS = "groups"
    BROKERS = "brokers"
    CONTEXTS = "contexts"
    USERS = "users"
    PRINCIPALS = "principals"


def live_names(session: Session, kind: Kind) -> list[str]:
    """The names of that kind, from the cache if it is fresh; CliError if the query fails."""
    if kind is Kind.CONTEXTS:
        return list(read_contexts(config_path()).named)
    cache = _cache_file(session.bootstrap_servers(), kind)
    if _is_young(cache):
        return cache.read_text().split()
    session.timeout = min(session.timeout, TIME_LIMIT_S)
    names = _ASK[kind](session)
    _keep(cache, names)
    return names


def _topics(session: Session) -> list[str]:
    return [topic.name for topic in ask(session, find_topics)]


def _groups(session: Session) -> list[str]:
    return [
        group.group_id
        for group in ask(session, list_groups, partial=True)
        if " " not in group.group_id
    ]


def _brokers(session: Session) -> list[str]:
    return [str(broker.id) for broker in ask(session, describe_cluster).brokers]


def _users(session: Session) -> list[str]:
    return _plain(one.user for one in ask(session, list_credentials))


def _principals(session: Session) -> list[str]:
    """Of all ACLs, in kctl's short form: bash would split `User:alice` at the colon."""
    acls = ask(session, lambda client: describe_acls(client, AclFilter()))
    names = (acl.principal.removeprefix("User:") for acl in acls)
    return _plain(name for name in names if ":" not in name and name != WILDCARD)


def _plain(names: Iterable[str]) -> list[str]:
    """Sorted, each once; names with blanks would need quotes."""
    return sorted({name for name in names if " " not in name})


_ASK: dict[Kind, Callable[[Session], list[str]]] = {
    Kind.TOPICS: _topics,
    Kind.GROUPS: _groups,
    Kind.BROKERS: _brokers,
    Kind.USERS: _users,
    Kind.PRINCIPALS: _principals,
}


def _cache_file(servers: str, kind: Kind) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cluster = hashlib.sha256(servers.encode()).hexdigest()[:16]
    return Path(base) / "kctl" / f"{cluster}-{kind}"


def _is_young(cache: Path) -> bool:
    try:
        return time.time() - cache.stat().st_mtime < KEPT_S
    except OSError:
        return False


def _keep(cache: Path, names: list[str]) -> None:
    """Best effort: an unwritable home directory disables only the cache."""
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        draft = cache.with_name(f"{cache.name}.{os.getpid()}")
        draft.write_text("\n".join(names))
        draft.replace(cache)
    except OSError:
        return
