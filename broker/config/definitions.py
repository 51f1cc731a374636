"""How settings are declared: each once, as a field of a class, with all of Kafka's attributes.

    class LogSettings(Settings):
        log_segment_bytes: int = integer(
            "log.segment.bytes", default=1 << 30, valid=at_least(14), mode=CLUSTER_WIDE
        )
        \"\"\"The size at which a segment is rolled.\"\"\"

The attribute is the key with underscores. The docstring below the field is its documentation, in
the source and, through `documentation`, in DescribeConfigs and docs/settings.md.

Settings are created from texts (`parse`) or by keyword, and are immutable.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from sys import modules
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast, dataclass_transform

from broker.config.validators import Validator
from broker.config.values import ConfigType, invalid_value, parse_value, value_text


class Importance(Enum):
    """Kafka's importance of a setting."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Whether a setting can be changed dynamically, and for which brokers."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


HIGH, MEDIUM, LOW = Importance
READ_ONLY, PER_BROKER, CLUSTER_WIDE = UpdateMode


class Status(Enum):
    """What this broker does with a setting that Kafka has."""

    OBEYED = "obeyed"
    FIXED = "fixed"
    """The broker always behaves as with the default; another value has no effect."""
    NO_EFFECT = "without effect"
    REJECTED = "rejected"
    """The broker does not start with any value but the default."""


class Effect(NamedTuple):
    """The status of a setting, and the reason unless it is obeyed."""

    status: Status
    reason: str = ""


OBEYED = Effect(Status.OBEYED)


def fixed(reason: str) -> Effect:
    """Declare that the broker behaves as with the default, whatever the value."""
    return Effect(Status.FIXED, reason)


def no_effect(reason: str) -> Effect:
    """Declare that nothing reads the setting."""
    return Effect(Status.NO_EFFECT, reason)


def rejected(reason: str) -> Effect:
    """Declare that the broker refuses to start with any value but the default.

    For settings that request a missing feature and are unsafe to ignore: an operator who
    configures an authorizer must not get a broker without one.
    """
    return Effect(Status.REJECTED, reason)


class Setting(NamedTuple):
    """The declaration of one key, without its documentation."""

    key: str
    type: ConfigType
    default: Any
    """The value of the attribute; None is Kafka's null."""
    valid: Validator | None = None
    importance: Importance = MEDIUM
    mode: UpdateMode = READ_ONLY
    internal: bool = False
    """Internal in Kafka: accepted, but not described unless it is set."""
    effect: Effect = OBEYED
    into: Callable[[str], Any] | None = None
    """Parses a text with a syntax of its own, such as listeners, into the attribute's value."""
    text_of: Callable[[Any], str | None] = value_text
    """The inverse of `into`."""

    @property
    def default_text(self) -> str | None:
        """The default as Kafka prints it; None for null."""
        return self.text_of(self.default)

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is a secret, which is never printed."""
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Any:
        """Parse and validate a text; ConfigError if it is invalid."""
        value = parse_value(self.key, text, self.type)
        if self.valid:
            self.valid(self.key, value)
        return value if self.into is None else self._formed(self.into, value)

    def _formed(self, into: Callable[[str], Any], text: str) -> Any:
        try:
            return into(text)
        except ValueError as error:
            raise invalid_value(self.key, text, str(error)) from error

    def shown(self, text: str) -> str | None:
        """`text` as Kafka prints it: trimmed, numbers and lists normalized."""
        return value_text(parse_value(self.key, text, self.type))


Value = TypeVar("Value")


class _Specifier:
    """Declares settings of one type; for mypy, the field has the type of its annotation."""

    def __init__(self, config_type: ConfigType) -> None:
        self._type = config_type

    def __call__(
        self,
        key: str,
        *,
        default: Value,
        valid: Validator | None = None,
        importance: Importance = MEDIUM,
        mode: UpdateMode = READ_ONLY,
        internal: bool = False,
        effect: Effect = OBEYED,
    ) -> Value:
        setting = Setting(key, self._type, default, valid, importance, mode, internal, effect)
        return cast(Value, setting)


boolean = _Specifier(ConfigType.BOOLEAN)
integer = _Specifier(ConfigType.INT)
short = _Specifier(ConfigType.SHORT)
long = _Specifier(ConfigType.LONG)
double = _Specifier(ConfigType.DOUBLE)
string = _Specifier(ConfigType.STRING)
strings = _Specifier(ConfigType.LIST)
class_name = _Specifier(ConfigType.CLASS)
password = _Specifier(ConfigType.PASSWORD)


def formed(
    key: str,
    *,
    default: Value,
    into: Callable[[str], Value],
    text_of: Callable[[Value], str | None],
    importance: Importance = MEDIUM,
    mode: UpdateMode = READ_ONLY,
) -> Value:
    """Declare a text with a syntax of its own: `into` parses it, `text_of` prints it."""
    setting = Setting(
        key, ConfigType.STRING, default, None, importance, mode, into=into, text_of=text_of
    )
    return cast(Value, setting)


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(
        boolean,
        integer,
        short,
        long,
        double,
        string,
        strings,
        class_name,
        password,
        formed,
    ),
)
class Settings:
    """The values of a class of settings. Created by keyword, or from texts by `parse`.

    Not a dataclass: creating one with three hundred fields takes longer than starting a broker.
    """

    settings: ClassVar[Mapping[str, Setting]] = {}
    """All settings of the class and its bases, by key."""
    attributes: ClassVar[Mapping[str, str]] = {}
    """The keys, by attribute."""

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.attributes.keys()
        if unknown:
            raise TypeError(f"unknown setting: {', '.join(sorted(unknown))}")
        texts = {
            self.attributes[name]: self.settings[self.attributes[name]].text_of(value)
            for name, value in values.items()
        }
        self._fill(values, {key: text for key, text in texts.items() if text is not None})

    @classmethod
    def parse(
        cls, texts: Mapping[str, str], defaults: Mapping[str, Any] = MappingProxyType({})
    ) -> Self:
        """Parse texts; ConfigError for the first invalid one.

        Unknown keys are only kept in `originals`. `defaults` are values by attribute that replace
        Kafka's defaults.
        """
        values = {
            name: cls.settings[key].parse(texts[key])
            for name, key in cls.attributes.items()
            if key in texts
        }
        settings = cls.__new__(cls)
        settings._fill({**defaults, **values}, dict(texts))
        return settings

    def _fill(self, values: Mapping[str, Any], originals: Mapping[str, str]) -> None:
        defaults = {name: self.settings[key].default for name, key in self.attributes.items()}
        self.__dict__.update(defaults, **values, _originals=originals)

    @property
    def originals(self) -> Mapping[str, str]:
        """The texts that were given, unknown keys included; all others have their default."""
        return cast(Mapping[str, str], self.__dict__["_originals"])

    def __init_subclass__(cls) -> None:
        names: dict[str, str] = {}
        settings: dict[str, Setting] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Setting):
                    names[name] = value.key
                    settings[value.key] = value
        cls.attributes, cls.settings = names, settings

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._given())
        return f"{type(self).__name__}({given})"

    def _given(self) -> list[str]:
        return [name for name, key in self.attributes.items() if key in self.originals]

    @classmethod
    @cache
    def documentation(cls) -> Mapping[str, str]:
        """The documentation of each setting, by key; parsed from the source on first use."""
        documentation: dict[str, str] = {}
        for base in cls.__mro__:
            names = {n: s.key for n, s in vars(base).items() if isinstance(s, Setting)}
            if names:
                texts = _field_docstrings(base)
                documentation |= {key: texts[name] for name, key in names.items()}
        return documentation


def _field_docstrings(cls: type) -> dict[str, str]:
    """The docstrings below the fields of a class, which Python does not keep."""
    import ast  # rarely needed, and slower to import than all settings

    source = Path(modules[cls.__module__].__file__ or "").read_text(encoding="utf-8")
    body = next(
        node.body
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    )
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
