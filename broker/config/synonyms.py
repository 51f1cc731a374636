"""Keys that set the same value, in order of precedence.

`log.roll.ms` and `log.roll.hours` set the same value in two units; `listener.name.ssl.ssl.protocol`
is `ssl.protocol` for one listener. The description of one lists the others, and a dynamic value of
one overrides the static values of all.
"""

import re
from collections.abc import Mapping
from typing import Final

_SAME: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_SYNONYMS: Final = {key: group for group in _SAME for key in group} | {
    # Not symmetric: the scheduler interval is also a setting of its own.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}
_LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_MECHANISM_KEYS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""Settings that a listener can have per SASL mechanism, which precedes the key."""


def base_key(key: str) -> str | None:
    """The key without the prefix `listener.name.<name>.`; None if it has no such prefix."""
    match = _LISTENER_KEY.fullmatch(key)
    return match[1] if match else None


def broker_synonyms(key: str) -> tuple[str, ...]:
    """The keys that set the same value, including `key`, highest precedence first."""
    if (base := base_key(key)) is None:
        return _SYNONYMS.get(key, (key,))
    for mechanism_key in _MECHANISM_KEYS:
        if base.endswith(mechanism_key):
            return key, mechanism_key
    return key, base


def override(texts: dict[str, str], overrides: Mapping[str, str]) -> None:
    """Put `overrides` into `texts`, and remove the synonyms that they override.

    A setting of one listener does not remove the base setting, which other listeners use.
    """
    for key, text in overrides.items():
        for synonym in _SYNONYMS.get(key, (key,)):
            texts.pop(synonym, None)
        texts[key] = text
