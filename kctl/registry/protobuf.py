"""Protobuf payloads: schemas are compiled with grpcio-tools, which contains protoc.

A registry returns the text of a .proto file; Confluent's Python client registers a serialized
FileDescriptorProto in base64 instead. Both are understood.
"""

import base64
import binascii
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from kctl.registry.schemas import Schema, UndecodableValue, UnencodableValue
from kctl.registry.wire import join_indexes, split_indexes

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message

_MAIN = "kctl-schema.proto"
_COMPILE_TIMEOUT_S = 60


class ProtobufCodec:
    """Decodes and encodes messages of one schema."""

    def __init__(self, schema: Schema, imported: Mapping[str, Schema]) -> None:
        pool = _pool(schema, imported)
        self._messages = list(pool.FindFileByName(_MAIN).message_types_by_name.values())
        self._file = pool.FindFileByName(_MAIN)

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The message as a dict: enums as names, bytes as bytes, int64 as int.

        A field without presence has its default; an absent field with presence is None.
        """
        return _values(self._message(payload))

    def document(self, payload: bytes) -> Any:
        """The message in Protobuf's JSON form, with the field names of the schema."""
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(
            self._message(payload),
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
            descriptor_pool=self._file.pool,
        )

    def encode(self, document: Any, message_name: str | None = None) -> bytes:
        """The payload of a document; `message_name` selects one of several messages."""
        from google.protobuf.json_format import ParseDict, ParseError

        indexes, descriptor = self._select(message_name)
        try:
            message = ParseDict(document, _class(descriptor)(), descriptor_pool=self._file.pool)
            return join_indexes(indexes, message.SerializeToString(deterministic=True))
        except (ParseError, ValueError, TypeError, AttributeError) as error:
            raise UnencodableValue(str(error)) from error

    def descriptor(self, payload: bytes) -> "Descriptor":
        """The message type of a value."""
        return self._message(payload).DESCRIPTOR

    def _message(self, payload: bytes) -> "Message":
        from google.protobuf.message import DecodeError

        indexes, data = split_indexes(payload)
        descriptor = dict(self._all(self._messages, ())).get(indexes)
        if descriptor is None:
            path = ",".join(map(str, indexes))
            raise UndecodableValue(f"its schema has no message with the index {path}")
        message = _class(descriptor)()
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise UndecodableValue(f"it is not a {descriptor.full_name}: {error}") from error
        return message

    def _select(self, name: str | None) -> "tuple[tuple[int, ...], Descriptor]":
        found = dict(self._all(self._messages, ()))
        if name is None and len(self._messages) == 1:
            return (0,), self._messages[0]
        for indexes, descriptor in found.items():
            if name in (descriptor.full_name, descriptor.name):
                return indexes, descriptor
        known = ", ".join(one.full_name for one in found.values())
        if name is None:
            raise UnencodableValue(f"the schema has several messages; choose one of {known}")
        raise UnencodableValue(f"the schema has no message {name!r}; it has {known}")

    def _all(
        self, messages: "Sequence[Descriptor]", path: tuple[int, ...]
    ) -> "Iterator[tuple[tuple[int, ...], Descriptor]]":
        for number, descriptor in enumerate(messages):
            yield (*path, number), descriptor
            yield from self._all(list(descriptor.nested_types), (*path, number))


def _class(descriptor: "Descriptor") -> "type[Message]":
    from google.protobuf.message_factory import GetMessageClass

    found: type[Message] = GetMessageClass(descriptor)
    return found


def _values(message: "Message") -> dict[str, Any]:
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: "Message", field: Any) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {key: _single(inner, one) for key, one in value.items()}
    if field.is_repeated:
        return [_single(field, one) for one in value]
    return _single(field, value)


def _single(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    return _values(value) if field.message_type is not None else value


def _pool(schema: Schema, imported: Mapping[str, Schema]) -> "DescriptorPool":
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    texts = {**{name: one.text for name, one in imported.items()}, _MAIN: schema.text}
    try:
        for file in _descriptors(texts):
            pool.Add(file)
        pool.FindFileByName(_MAIN)
    except (TypeError, KeyError) as error:
        raise UndecodableValue(f"its Protobuf schema is not valid: {error}") from error
    return pool


def _descriptors(texts: Mapping[str, str]) -> "Iterator[FileDescriptorProto]":
    """The files with everything they import."""
    serialized = {name: _serialized(name, text) for name, text in texts.items()}
    if all(serialized.values()):
        yield from _well_known()
        yield from (one for one in serialized.values() if one is not None)
        return
    yield from _compiled(texts)


def _serialized(name: str, text: str) -> "FileDescriptorProto | None":
    """The descriptor in base64, if `text` is one."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    file.name = name
    return file


def _well_known() -> "Iterator[FileDescriptorProto]":
    """Google's own types, which a serialized descriptor imports without containing them."""
    from google.protobuf import (
        any_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    for module in (
        *(descriptor_pb2, any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2),
        *(timestamp_pb2, wrappers_pb2),
    ):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        yield file


def _compiled(texts: Mapping[str, str]) -> "Iterator[FileDescriptorProto]":
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with tempfile.TemporaryDirectory(prefix="kctl-proto-") as directory:
        root, result = Path(directory, "files"), Path(directory, "descriptors")
        for name, text in texts.items():
            _write(root, name, text)
        _run_protoc(root, result)
        yield from FileDescriptorSet.FromString(result.read_bytes()).file


def _write(root: Path, name: str, text: str) -> None:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts:
        raise UndecodableValue(
            f"its Protobuf schema imports {name!r}, which is not a relative path"
        )
    path = root / parts
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _run_protoc(root: Path, result: Path) -> None:
    """Compile the main file. In a process of its own: protoc writes its errors to stderr."""
    tools = find_spec("grpc_tools")
    if tools is None or not tools.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'grpc_tools'", name="grpc_tools")
    bundled = Path(tools.submodule_search_locations[0], "_proto")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", f"-I{bundled}"]
    command += ["--include_imports", f"--descriptor_set_out={result}", _MAIN]
    done = subprocess.run(  # noqa: S603 - no shell
        command, capture_output=True, text=True, timeout=_COMPILE_TIMEOUT_S, check=False
    )
    if done.returncode:
        reason = done.stderr.replace(f"{_MAIN}:", "").strip().splitlines()
        raise UndecodableValue(f"its Protobuf schema is not valid: {reason[0] if reason else ''}")
