"""Random valid requests, built from the schemas that the broker's codecs are compiled from."""

import random
from typing import Any

from broker.model import Uuid
from broker.protocol.codec import encode
from broker.protocol.errors import EncodeError
from broker.protocol.headers import RequestHeader, request_header_version
from broker.protocol.schema import Field, Request, Struct, StructMeta
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec

NOW_MS = 1_700_000_000_000
NAMES = [
    "orders",
    "absent",
    "__consumer_offsets",
    "",
    "a" * 249,
    "a" * 250,
    "..",
    "a/b",
    "\0",
    "é€😀",
]
INT_BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
MAX_DEPTH = 6


class Generator:
    """Makes requests of the given classes; `rng` makes all choices."""

    def __init__(self, rng: random.Random, requests: list[type[Request[Any]]]) -> None:
        self._rng = rng
        self._requests = requests

    def frame(self) -> bytes:
        """A random request with its header, without the size."""
        while True:
            request = self._rng.choice(self._requests)
            version = self._rng.randint(*request.versions)
            header = RequestHeader(
                request_api_key=request.api_key,
                request_api_version=version,
                correlation_id=self._rng.getrandbits(31),
                client_id=self._rng.choice([None, "fuzz", "", "x" * 1000]),
            )
            try:
                message = self._struct(request, version, 0)
                assert isinstance(message, Request)
                body = encode(message, version)
            except (EncodeError, ValueError, OverflowError):
                continue  # not every combination of fields can be encoded in every version
            return encode(header, request_header_version(request.api_key, version)) + body

    def _struct(self, cls: StructMeta, version: int, depth: int) -> Struct:
        values = {
            field.name: self._value(field, version, depth)
            for field in cls.fields
            if field.in_version(version) and (field.tag is None or self._rng.random() < 0.3)
        }
        built: Struct = cls(**values)
        return built

    def _value(self, field: Field, version: int, depth: int) -> Any:
        if field.nullable_in(version) and self._rng.random() < 0.15:
            return None
        if not field.is_array:
            return self._scalar(field, version, depth)
        if depth >= MAX_DEPTH:
            return []
        count = self._rng.choice([0, 1, 1, 1, 2, 3, 20 if depth < 2 else 2])
        return [self._scalar(field.element(), version, depth + 1) for _ in range(count)]

    def _scalar(self, field: Field, version: int, depth: int) -> Any:
        kind = field.type
        if isinstance(kind, StructMeta):
            return self._struct(kind, version, depth + 1)
        if kind in INT_BITS:
            return self._integer(kind)
        match kind:
            case "bool":
                return self._rng.random() < 0.5
            case "float64":
                return self._rng.choice([0.0, -1.0, 1e300, float("inf"), float("nan")])
            case "uuid":
                return self._rng.choice([Uuid.ZERO, Uuid(self._rng.randbytes(16))])
            case "string":
                return self._rng.choice(NAMES)
            case "bytes":
                return self._rng.randbytes(self._rng.choice([0, 1, 2, 10, 1000]))
            case _:
                return self._records()

    def _integer(self, kind: str) -> int:
        bits = INT_BITS[kind]
        low, high = (
            (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        # Mostly small, so that most requests get past the first checks.
        choices = [0, 1, -1, 2, 3, 5, 100, low, high, high - 1, self._rng.randint(low, high)]
        weights = [8, 8, 4, 2, 2, 1, 1, 1, 1, 1, 1]
        chosen = self._rng.choices(choices, weights)[0]
        return int(min(max(chosen, low), high))

    def _records(self) -> bytes:
        if self._rng.random() < 0.2:
            return self._rng.randbytes(self._rng.choice([0, 10, 61, 200]))
        count = self._rng.choice([1, 1, 2, 10])
        rows = [
            (i, NOW_MS + i, self._rng.choice([None, b"k"]), self._rng.randbytes(5), ())
            for i in range(count)
        ]
        settings = BatchSettings(codec=self._rng.choice(list(Codec)))
        return build_batch(rows, settings)
