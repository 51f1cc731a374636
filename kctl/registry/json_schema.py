"""JSON Schema payloads: plain JSON, validated when it is written."""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from kctl.registry.schemas import Schema, UndecodableValue, UnencodableValue


class JsonCodec:
    """Decodes and encodes documents of one JSON schema."""

    def __init__(self, schema: Schema, imported: Mapping[str, Schema]) -> None:
        self._schema = schema
        self._imported = imported

    def decode(self, payload: bytes) -> Any:
        """The document; it is not validated, as the producer has done that."""
        try:
            return json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise UndecodableValue(f"it is not JSON: {error}") from error

    document = decode

    def encode(self, document: Any) -> bytes:
        """The payload; UnencodableValue if the document is not valid."""
        from jsonschema.exceptions import ValidationError
        from referencing.exceptions import Unresolvable

        try:
            self.validator.validate(document)
        except ValidationError as error:
            raise UnencodableValue(f"{error.json_path}: {error.message}") from error
        except Unresolvable as error:
            raise UnencodableValue(f"the JSON schema is not valid: {error}") from error
        return json.dumps(document, ensure_ascii=False).encode()

    @cached_property
    def validator(self) -> Any:
        """The validator of the schema; UnencodableValue if it is not a JSON schema."""
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT7

        try:
            known: Any = Registry().with_resources(
                (name, Resource.from_contents(json.loads(one.text), default_specification=DRAFT7))
                for name, one in self._imported.items()
            )
            contents = json.loads(self._schema.text)
            validator = validator_for(contents)
            validator.check_schema(contents)
        except (SchemaError, ValueError) as error:
            raise UnencodableValue(f"the JSON schema is not valid: {error}") from error
        return validator(contents, registry=known)
