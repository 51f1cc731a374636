"""Topics that Kafka Streams creates for an application."""

import re
from collections.abc import Iterable
from typing import Final

_ENDINGS: Final = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
_FOREIGN_KEY_JOIN: Final = re.compile(
    r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
)


def is_internal_topic(name: str, application_id: str) -> bool:
    """Whether the name is that of an internal topic: `<application id>-…-changelog` and the like.

    Other topics that begin with the application id may belong to users and are left alone.
    """
    if not name.startswith(f"{application_id}-"):
        return False
    return name.endswith(_ENDINGS) or _FOREIGN_KEY_JOIN.fullmatch(name) is not None


def internal_topics(names: Iterable[str], application_id: str) -> list[str]:
    """The internal topics of an application, sorted."""
    return sorted(name for name in names if is_internal_topic(name, application_id))
