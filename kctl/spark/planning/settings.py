"""Settings of the tasks of an export, stored with the plan."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.cli.errors import CliError, ExitStatus
from kctl.spark.decoding.columns import DEFAULT_COLUMNS, TYPES
from kctl.spark.decoding.ddl import parse_ddl
from kctl.spark.decoding.evolution import Evolution
from kctl.spark.decoding.schema import encode_struct

if TYPE_CHECKING:
    from kctl.cli.security.settings import SecuritySettings
    from kctl.registry.settings import RegistrySettings

DEFAULT_FILE_BYTES = 256 * 1024 * 1024
DEFAULT_ROW_GROUP_BYTES = 16 * 1024 * 1024


class ExportFormat(StrEnum):
    """Values of `--format`."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"
    ORC = "orc"
    AVRO = "avro"

    @property
    def spark_name(self) -> str:
        """Spark's name of the format."""
        return "json" if self is ExportFormat.JSONL else self.value


class IsolationLevel(StrEnum):
    """Values of `--isolation`."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class ContentType(StrEnum):
    """How keys and values are decoded."""

    BINARY = "binary"
    STRING = "string"
    JSON = "json"
    REGISTRY = "registry"
    """By the schema in a schema registry whose id each value carries."""

    @property
    def has_schema(self) -> bool:
        """Whether values become structs."""
        return self in (ContentType.JSON, ContentType.REGISTRY)


class OnGap(StrEnum):
    """Values of `--on-gap`: what to do about records deleted before they were exported."""

    FAIL = "fail"
    SKIP = "skip"


class Codec(StrEnum):
    """Codecs of `--compression`."""

    NONE = "none"
    SNAPPY = "snappy"
    GZIP = "gzip"
    LZ4 = "lz4"
    ZSTD = "zstd"


@dataclass(frozen=True)
class Compression:
    """A codec and its level; None for the codec's default level."""

    codec: Codec
    level: int | None = None

    @classmethod
    def parse(cls, text: str, export_format: ExportFormat) -> "Compression":
        """`zstd` or `zstd:3`; empty for the default of the format; CliError if not possible.

        zstd at level 1 is as fast as snappy and its files are half as large or less. Text is not
        compressed by default, so that any tool can read it.
        """
        if not text:
            return _DEFAULT_COMPRESSION[export_format]
        name, colon, level = text.partition(":")
        codec = _choice(Codec, "--compression", name)
        if codec not in _CODECS[export_format]:
            raise _unknown(f"--compression {text} for {export_format}", "", _CODECS[export_format])
        if not colon:
            return cls(codec, 1 if codec is Codec.ZSTD else None)
        if codec not in (Codec.ZSTD, Codec.GZIP) or not level.isdecimal():
            raise CliError(
                f"--compression {text}: invalid level", "e.g. zstd:3 or gzip:9", ExitStatus.USAGE
            )
        return cls(codec, int(level))


_TEXT_CODECS = (Codec.NONE, Codec.GZIP)
_CODECS = {
    ExportFormat.PARQUET: tuple(Codec),
    ExportFormat.ORC: (Codec.NONE, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD),
    ExportFormat.JSONL: _TEXT_CODECS,
    ExportFormat.CSV: _TEXT_CODECS,
    ExportFormat.AVRO: (Codec.NONE, Codec.SNAPPY, Codec.ZSTD),
}
_DEFAULT_COMPRESSION = {
    ExportFormat.PARQUET: Compression(Codec.ZSTD, 1),
    ExportFormat.ORC: Compression(Codec.SNAPPY),
    ExportFormat.JSONL: Compression(Codec.NONE),
    ExportFormat.CSV: Compression(Codec.NONE),
    ExportFormat.AVRO: Compression(Codec.SNAPPY),
}


class PartitionColumn(StrEnum):
    """Values of `--partition-by`: a directory level each, as in Hive."""

    TOPIC = "topic"
    PARTITION = "partition"
    DATE = "date"
    HOUR = "hour"


Choice = TypeVar("Choice", bound=StrEnum)


def _choice(kind: type[Choice], option: str, text: str) -> Choice:
    try:
        return kind(text)
    except ValueError:
        raise _unknown(option, text, kind) from None


def _unknown(option: str, text: str, choices: Iterable[str]) -> CliError:
    return CliError(
        f"{option} {text}: unknown", f"choose from {', '.join(choices)}", ExitStatus.USAGE
    )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def parse_on_gap(text: str) -> OnGap:
    """`--on-gap`; a usage error if it is unknown."""
    return _choice(OnGap, "--on-gap", text)


def parse_evolution(text: str, value_type: str) -> Evolution:
    """`--schema-evolution`; a usage error if it is unknown, or there is no schema to change."""
    evolution = _choice(Evolution, "--schema-evolution", text)
    if evolution is not Evolution.NONE and value_type not in (
        ContentType.JSON,
        ContentType.REGISTRY,
    ):
        raise CliError(
            "--schema-evolution needs --value json or registry", "add it", ExitStatus.USAGE
        )
    return evolution


def parse_share(text: str) -> float:
    """`--sample` as a share: `1%` is 0.01; a usage error if it is not between 0 and 100 %."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1
    if not 0 < share <= 1:
        raise CliError(f"--sample {text}: invalid", "e.g. 1% or 0.1%", ExitStatus.USAGE)
    return share


def read_schema(path: Path) -> str:
    """The schema in a DDL file; CliError if it is not valid."""
    try:
        kind = parse_ddl(" ".join(path.read_text().split()))
    except OSError as error:
        raise CliError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    if not kind.num_fields:
        raise CliError(f"{path}: names no columns", "e.g. id INT, name STRING", ExitStatus.USAGE)
    return encode_struct(kind)


@dataclass(frozen=True)
class TaskSettings:
    """The settings of a task."""

    staging: str
    """The staging directory of the run."""
    bootstrap_servers: str = ""
    """Bootstrap servers; empty if pieces are parts of files."""
    timeout_s: float = 30.0
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    export_format: ExportFormat = ExportFormat.PARQUET
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    partition_by: tuple[PartitionColumn, ...] = ()
    key_type: ContentType = ContentType.BINARY
    value_type: ContentType = ContentType.BINARY
    value_schema: str = ""
    """The schema of JSON values (`encode_struct`); empty: text that is known to be JSON."""
    is_schema_inferred: bool = False
    """Whether the schema comes from a sample: then values with other fields are set aside. With a
    schema given by the user, other fields are left out deliberately."""
    file_bytes: int = DEFAULT_FILE_BYTES
    row_group_bytes: int = DEFAULT_ROW_GROUP_BYTES
    """Bytes of records in a row group, before compression."""
    compression: str = ""
    """`--compression`; empty for the default of the format."""
    since_ms: int | None = None
    until_ms: int | None = None
    """Timestamps of the records to export: since_ms <= timestamp < until_ms."""
    sample: float = 1.0
    """The share of the records to export."""
    where: str = ""
    """A condition on decoded rows (decoding/where.py)."""
    is_flat: bool = False
    """Whether the fields of JSON values are columns of their own."""
    on_gap: OnGap = OnGap.FAIL
    schema_id: int = 0
    """The schema in the registry that the value's type was made from."""
    registry: "RegistrySettings | None" = field(default=None, repr=False)
    """The schema registry. Contains secrets, as `security`."""
    security: "SecuritySettings | None" = field(default=None, repr=False)
    """TLS and SASL settings. They contain secrets: they are sent to tasks with their code and never
    written to a plan or a manifest."""

    @classmethod
    def parse(
        cls,
        *,
        isolation: str,
        export_format: str,
        columns: str | None,
        partition_by: str | None,
        key_type: str,
        value_type: str,
        schema_file: Path | None,
        compression: str = "",
        is_flat: bool = False,
    ) -> "TaskSettings":
        """Parse options; CliError names an invalid one and its choices."""
        names = _names(columns) or DEFAULT_COLUMNS
        for name in names:
            if name not in TYPES:
                raise _unknown("--columns", name, TYPES)
        if schema_file is not None and value_type != ContentType.JSON:
            raise CliError("--schema needs --value json", "add it", ExitStatus.USAGE)
        if key_type == ContentType.REGISTRY:
            raise CliError(
                "--key registry: registry schemas are supported for values only",
                "",
                ExitStatus.USAGE,
            )
        if is_flat and value_type not in (ContentType.JSON, ContentType.REGISTRY):
            raise CliError("--flatten needs --value json or registry", "add it", ExitStatus.USAGE)
        Compression.parse(compression, _choice(ExportFormat, "--format", export_format))
        levels = _names(partition_by)
        if len(set(levels)) < len(levels):
            raise CliError(f"--partition-by {partition_by}: repeated name", "", ExitStatus.USAGE)
        if not set(names) - set(levels):
            raise CliError(
                "every column is a directory level, so files would have no columns",
                "add a column that is not in --partition-by",
                ExitStatus.USAGE,
            )
        return cls(
            staging="",
            isolation=_choice(IsolationLevel, "--isolation", isolation),
            export_format=_choice(ExportFormat, "--format", export_format),
            columns=tuple(name for name in TYPES if name in names),
            partition_by=tuple(_choice(PartitionColumn, "--partition-by", name) for name in levels),
            key_type=_choice(ContentType, "--key", key_type),
            value_type=_choice(ContentType, "--value", value_type),
            value_schema="" if schema_file is None else read_schema(schema_file),
            compression=compression,
            is_flat=is_flat,
        )

    @property
    def has_row_filter(self) -> bool:
        """Whether not every record becomes a row."""
        is_timed = self.since_ms is not None or self.until_ms is not None
        return is_timed or self.sample < 1 or bool(self.where)

    def to_json(self) -> dict[str, Any]:
        """As a JSON document, without `security`."""
        fields = asdict(replace(self, security=None, registry=None))
        del fields["security"], fields["registry"]
        return fields

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "TaskSettings":
        """The inverse of `to_json`."""
        return cls(
            **{
                **fields,
                "isolation": IsolationLevel(fields["isolation"]),
                "export_format": ExportFormat(fields["export_format"]),
                "columns": tuple(fields["columns"]),
                "partition_by": tuple(PartitionColumn(name) for name in fields["partition_by"]),
                "key_type": ContentType(fields["key_type"]),
                "value_type": ContentType(fields["value_type"]),
                "on_gap": OnGap(fields.get("on_gap", OnGap.FAIL)),
            }
        )
