"""docs/settings.md: every setting, and what this broker does with it.

Written from the declarations by `python -m kctl.docs`, whose `--check` finds it out of date.
"""

from collections import Counter
from typing import Final

from broker.config.broker import BrokerConfig, DynamicOnlySettings
from broker.config.definitions import Setting, Settings, Status
from broker.config.settings.authorizer import AuthorizerSettings
from broker.config.topic import TopicConfig

_HEAD: Final = """\
# Settings

Every setting of Apache Kafka 3.9 that the broker knows, and what it does with it. Generated from
`broker/config`; run `make docs` after a change there.

| status | meaning |
|---|---|
| obeyed | as in Kafka |
| fixed | the broker always behaves as with the default; another value logs a warning at start |
| without effect | nothing reads it; setting it logs a warning at start |
| rejected | the broker does not start with any value but the default |

Keys that are unknown are ignored with a warning. `ssl.*` and `sasl.*` settings can be given for
single listeners (`listener.name.<name>.<key>`), and `sasl.jaas.config` and
`connections.max.reauth.ms` for single SASL mechanisms (`listener.name.<name>.<mechanism>.<key>`).
"""

_SECTIONS: Final[tuple[tuple[str, type[Settings]], ...]] = (
    ("Broker settings", BrokerConfig),
    ("Broker settings that are only set dynamically", DynamicOnlySettings),
    ("Topic settings", TopicConfig),
    ("Settings of the authorizer", AuthorizerSettings),
)


def settings_page() -> str:
    """The text of docs/settings.md."""
    return "\n".join([_HEAD, *(_section(title, cls) for title, cls in _SECTIONS)])


def _section(title: str, cls: type[Settings]) -> str:
    statuses = Counter(setting.effect.status for setting in cls.settings.values())
    counts = [f"{statuses[status]} {status.value}" for status in Status if statuses[status]]
    documentation = cls.documentation()
    rows = [_row(cls.settings[key], documentation[key]) for key in sorted(cls.settings)]
    head = "| name | type | default | status | description |\n|---|---|---|---|---|"
    return f"## {title}\n\n{len(rows)} settings: {', '.join(counts)}.\n\n{head}\n" + "".join(rows)


def _row(setting: Setting, documentation: str) -> str:
    default = setting.default_text
    status = setting.effect.status.value
    if setting.effect.reason:
        status += f": {setting.effect.reason}"
    cells = (
        f"`{setting.key}`",
        setting.type.name.lower(),
        "null" if default is None else f"`{default}`" if default else "empty",
        status,
        documentation,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
