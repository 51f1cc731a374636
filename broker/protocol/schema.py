"""How a message is declared: one class per message, one line per field, versions on the field.

    class HeartbeatRequest(Request["HeartbeatResponse"], api_key=12, versions=(0, 4), flexible=4):
        group_id: str = wire("string")
        generation_id: int = wire("int32")
        member_id: str = wire("string")
        group_instance_id: str | None = wire("string", since=3, nullable=3, default=None)

Messages are built with keywords, and every field has Kafka's default. They are not changed later
(mypy checks that; nothing does at run time). `codec` turns declarations into code.

Types: bool int8 int16 uint16 int32 uint32 int64 float64 uuid string bytes records, `"[]int32"`
for an array of one of these, a Struct class for a struct and `[StructClass]` for an array of it.
"""

from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar, dataclass_transform

from broker.model import Uuid

LATEST: Final = 0x7FFF
"""The upper end of an open version range."""

_UNSET: Final[Any] = object()

_ZERO: Final[dict[str, Any]] = {
    "bool": False,
    "float64": 0.0,
    "uuid": Uuid.ZERO,
    "string": "",
    "bytes": b"",
    "records": None,
} | dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), 0)
"""Kafka's defaults of fields that declare none."""


class Field(NamedTuple):
    """One field of a struct, as declared."""

    name: str
    type: "str | StructMeta"  # a primitive's name, or the struct's class
    is_array: bool
    since: int
    until: int
    nullable: int  # the first version in which null is allowed; above LATEST: never
    default: (
        Any  # for arrays unless nullable by default: _UNSET, each message gets a list of its own
    )
    tag: int | None  # travels in the tagged section, under this number, when it is not the default
    ignorable: bool  # may be dropped silently in versions that do not carry it
    flexible: bool  # False: keeps the old encoding even in flexible versions (the client id)

    def in_version(self, version: int) -> bool:
        """Whether this version has the field."""
        return self.since <= version <= self.until

    def nullable_in(self, version: int) -> bool:
        """Whether this version allows null."""
        return version >= self.nullable

    def element(self) -> "Field":
        """The element of an array as a field; only the array can be null."""
        return self._replace(is_array=False, nullable=LATEST + 1)

    def default_value(self) -> Any:
        """The default; a new list for each caller."""
        return [] if self.default is _UNSET else self.default


class _Declaration(NamedTuple):
    """The arguments of `wire`; becomes a Field when the class gives it a name."""

    type: "str | StructMeta | list[StructMeta]"
    options: dict[str, Any]

    def named(self, name: str) -> Field:
        kind, is_array = self.type, False
        if isinstance(kind, list):
            kind, is_array = kind[0], True
        elif isinstance(kind, str) and kind.startswith("[]"):
            kind, is_array = kind[2:], True
        options = dict(self.options)
        if options["default"] is _UNSET and not is_array:
            options["default"] = _ZERO[kind] if isinstance(kind, str) else kind()
        return Field(name=name, type=kind, is_array=is_array, **options)


def wire(
    type: "str | StructMeta | list[StructMeta]",  # noqa: A002
    *,
    since: int = 0,
    until: int = LATEST,
    nullable: int = LATEST + 1,
    default: Any = _UNSET,
    tag: int | None = None,
    ignorable: bool = False,
    flexible: bool = True,
) -> Any:
    """Declare a field: its type, the versions that carry it, and Kafka's default for it.

    `nullable` is the first version that allows null. A field that is not `ignorable` and holds
    something else than its default cannot be encoded in a version without it (EncodeError).
    """
    return _Declaration(
        type,
        {
            "since": since,
            "until": until,
            "nullable": nullable,
            "default": default,
            "tag": tag,
            "ignorable": ignorable,
            "flexible": flexible,
        },
    )


@dataclass_transform(kw_only_default=True, frozen_default=True)
class StructMeta(type):
    """Turns declared fields into slots; keeps the declaration in `fields`."""

    fields: tuple[Field, ...]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "StructMeta":
        """Create the class; `options` are those of Message.__init_subclass__."""
        fields = tuple(
            declaration.named(key)
            for key, declaration in namespace.items()
            if isinstance(declaration, _Declaration)
        )
        for field in fields:
            del namespace[field.name]
        namespace["fields"] = fields
        namespace["__slots__"] = tuple(field.name for field in fields)
        namespace["__init__"] = _compile_init_and_call
        return super().__new__(mcs, name, bases, namespace, **options)


def _compile_init_and_call(self: "Struct", **values: Any) -> None:
    """The first `__init__` of every class, as most messages are imported and never built."""
    cls = type(self)
    names = [field.name for field in cls.fields]
    scope: dict[str, Any] = {"unset": _UNSET}
    lines = [
        f"def __init__(self, *, {', '.join(f'{n}=default_{n}' for n in names)}):"
        if names
        else "def __init__(self):"
    ]
    for field in cls.fields:
        scope[f"default_{field.name}"] = field.default
        value = f"[] if {field.name} is unset else {field.name}"
        lines.append(f" self.{field.name} = {value if field.default is _UNSET else field.name}")
    lines.append(" self.unknown_tags = None")
    exec("\n".join(lines), scope)  # noqa: S102  # the text is made of our own field names
    cls.__init__ = scope["__init__"]  # type: ignore[method-assign]
    cls.__init__(self, **values)


class _Tagged:
    """Holds unknown tags, in a class of its own so that they are not taken for a field."""

    __slots__ = ("unknown_tags",)

    unknown_tags: dict[int, bytes] | None
    """Tagged fields that are not declared here, by tag; encoded again unchanged."""


class Struct(_Tagged, metaclass=StructMeta):
    """A struct inside a message. Equal when all fields are; not hashable."""

    fields: ClassVar[tuple[Field, ...]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.fields is not other.fields:
            return NotImplemented
        return self.unknown_tags == other.unknown_tags and all(
            getattr(self, field.name) == getattr(other, field.name) for field in self.fields
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        told = ", ".join(
            f"{field.name}={value!r}"
            for field in self.fields
            if (value := getattr(self, field.name)) != field.default_value()
        )
        return f"{type(self).__name__}({told})"


class Message(Struct):
    """A whole message: a request, a response, or data inside of other bytes."""

    versions: ClassVar[tuple[int, int]]
    """The lowest and the highest version declared here."""
    flexible: ClassVar[int]
    """The first version with compact lengths and tagged fields."""

    def __init_subclass__(
        cls, *, versions: tuple[int, int] | None = None, flexible: int = LATEST + 1, **rest: Any
    ) -> None:
        """Take the options of the class statement."""
        super().__init_subclass__(**rest)
        if versions is not None:
            cls.versions = versions
            cls.flexible = flexible


ResponseT = TypeVar("ResponseT", bound="Response")


class Response(Message):
    """A response of a broker."""


class Request(Message, Generic[ResponseT]):
    """A request of a client; names its response, so that `send` of a client is typed."""

    api_key: ClassVar[int]

    def __init_subclass__(cls, *, api_key: int | None = None, **rest: Any) -> None:
        """Take the options of the class statement."""
        super().__init_subclass__(**rest)
        if api_key is not None:
            cls.api_key = api_key
