"""How the schema of JSON values changes from export to export (`--schema-evolution`).

Only changes that keep every stored value exact: fields are added, never removed, and a number's
type becomes wider. A type that neither side can hold keeps its first form, and values that do not
fit it are set aside as before.
"""

from collections.abc import Iterable
from enum import StrEnum

import pyarrow as pa

from kctl.spark.decoding.schema import sample_types, without_nulls


class Evolution(StrEnum):
    """Values of `--schema-evolution`."""

    NONE = "none"
    ADD = "add"
    """New fields are added; files of earlier exports stay as they are."""
    WIDEN = "widen"
    """Also wider numbers; files of earlier exports are rewritten if a type changes."""


def evolve(known: pa.DataType, found: pa.DataType, evolution: Evolution) -> pa.DataType:
    """The type `known` with what `found` adds to it, as far as allowed."""
    if evolution is Evolution.NONE or pa.types.is_null(found):
        return known
    if pa.types.is_null(known):  # a new field that was always null so far
        return found
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        return _evolve_struct(known, found, evolution)
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(evolve(known.value_type, found.value_type, evolution))
    return _wider(known, found) if evolution is Evolution.WIDEN else known


def evolve_by_sample(
    known: pa.DataType, values: Iterable[bytes | None], evolution: Evolution
) -> pa.DataType:
    """The struct type `known` with what a sample of JSON values adds to it."""
    for found in sample_types(values):
        known = evolve(known, found, evolution)
    return without_nulls(known)


def is_retyped(before: pa.DataType, after: pa.DataType) -> bool:
    """Whether a field of `before` has another type in `after`: one reader cannot read both."""
    if pa.types.is_struct(before) and pa.types.is_struct(after):
        return any(
            after.get_field_index(field.name) < 0
            or is_retyped(field.type, after.field(field.name).type)
            for field in before
        )
    if pa.types.is_list(before) and pa.types.is_list(after):
        return is_retyped(before.value_type, after.value_type)
    return not before.equals(after)


def covers(kind: pa.DataType, other: pa.DataType) -> bool:
    """Whether a type has every field of another, with the same type or a wider one."""
    if pa.types.is_struct(kind) and pa.types.is_struct(other):
        return all(
            kind.get_field_index(field.name) >= 0
            and covers(kind.field(field.name).type, field.type)
            for field in other
        )
    if pa.types.is_list(kind) and pa.types.is_list(other):
        return covers(kind.value_type, other.value_type)
    return bool(kind.equals(_wider(other, kind)))


def conform(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in an evolved type; new fields are null. ArrowInvalid if a value would change."""
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        parts = dict(
            zip((field.name for field in column.type), column.flatten(), strict=True)
        )  # flatten: a null struct has null parts
        return pa.StructArray.from_arrays(
            [
                conform(parts[field.name], field.type)
                if field.name in parts
                else pa.nulls(len(column), field.type)
                for field in kind
            ],
            fields=list(kind),
            mask=column.is_null(),
        )
    if pa.types.is_list(kind) and pa.types.is_list(column.type):
        return _conform_list(column, kind)
    return column.cast(kind)


def conform_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema; those that the table lacks are null."""
    return pa.table(
        [
            conform(table.column(field.name).combine_chunks(), field.type)
            if field.name in table.column_names
            else pa.nulls(len(table), field.type)
            for field in schema
        ],
        schema=schema,
    )


def _evolve_struct(known: pa.DataType, found: pa.DataType, evolution: Evolution) -> pa.DataType:
    others = {field.name: field.type for field in found}
    fields = [
        (field.name, evolve(field.type, others.pop(field.name, field.type), evolution))
        for field in known
    ]
    return pa.struct([*fields, *others.items()])


def _wider(known: pa.DataType, found: pa.DataType) -> pa.DataType:
    numbers = [pa.types.is_integer(each) or pa.types.is_floating(each) for each in (known, found)]
    if not all(numbers) or known.equals(found):
        return known
    if pa.types.is_integer(known) and pa.types.is_integer(found):
        return max(known, found, key=lambda each: each.bit_width)
    return pa.float64()


def _conform_list(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Offsets are taken from the lengths: those of a sliced array do not begin at 0."""
    if column.type.equals(kind):
        return column
    items = conform(column.flatten(), kind.value_type)
    offsets, at = [], 0
    for length in column.value_lengths().to_pylist():
        offsets.append(None if length is None else at)
        at += length or 0
    return pa.ListArray.from_arrays(pa.array([*offsets, at], pa.int32()), items, type=kind)
