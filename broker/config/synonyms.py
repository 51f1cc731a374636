"""Settings that stand for one another, in the order in which they count.

`log.roll.ms` and `log.roll.hours` say the same in two units; `listener.name.ssl.ssl.protocol` is
`ssl.protocol` for one listener. Who asks for one is shown the others too, and a dynamic value of
one puts aside the static values of all.
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
    # One way only: the scheduler's interval is a setting of its own.
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
"""Settings that a listener can have per SASL mechanism, the mechanism written before the key."""


def base_key(key: str) -> str | None:
    """The key without `listener.name.<name>.`; None if it has no such prefix."""
    match = _LISTENER_KEY.fullmatch(key)
    return match[1] if match else None


def broker_synonyms(key: str) -> tuple[str, ...]:
    """The keys that stand for the same, `key` included, the one that counts most first."""
    if (base := base_key(key)) is None:
        return _SYNONYMS.get(key, (key,))
    for mechanism_key in _MECHANISM_KEYS:
        if base.endswith(mechanism_key):
            return key, mechanism_key
    return key, base


def override(texts: dict[str, str], overrides: Mapping[str, str]) -> None:
    """Put `overrides` into `texts`, and out of it what they put aside.

    A setting of one listener leaves the base setting in place: other listeners use it.
    """
    for key, text in overrides.items():
        for synonym in _SYNONYMS.get(key, (key,)):
            texts.pop(synonym, None)
        texts[key] = text
