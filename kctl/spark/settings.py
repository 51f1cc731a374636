"""How the tasks of an export read and write: the same for all of them, kept with the plan."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.errors import CliError, ExitStatus
from kctl.spark.columns import DEFAULT_COLUMNS, TYPES
from kctl.spark.schema import encode_struct, parse_ddl
from kctl.spark.writers import ExportFormat

if TYPE_CHECKING:
    from kctl.security.settings import SecuritySettings

DEFAULT_FILE_BYTES = 256 * 1024 * 1024


class IsolationLevel(StrEnum):
    """What `--isolation` takes."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class ContentType(StrEnum):
    """What keys and values are taken for."""

    BINARY = "binary"
    STRING = "string"
    JSON = "json"


class PartitionColumn(StrEnum):
    """What `--partition-by` takes: a directory level each, in the way of Hive."""

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
        f"{option} {text}: unknown", f"there are {', '.join(choices)}", ExitStatus.USAGE
    )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def read_schema(path: Path) -> str:
    """The fields that the DDL in a file describes; CliError if it describes none."""
    try:
        return encode_struct(parse_ddl(" ".join(path.read_text().split())))
    except OSError as error:
        raise CliError(f"{path}: {(error.strerror or str(error)).lower()}") from error


@dataclass(frozen=True)
class TaskSettings:
    """What a task needs to know apart from its pieces."""

    staging: str
    """The directory of the run, where attempts write aside."""
    bootstrap_servers: str = ""
    """Whom to fetch from; empty if pieces are spans of files."""
    timeout_s: float = 30.0
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    export_format: ExportFormat = ExportFormat.PARQUET
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    partition_by: tuple[PartitionColumn, ...] = ()
    key_type: ContentType = ContentType.BINARY
    value_type: ContentType = ContentType.BINARY
    value_schema: str = ""
    """Of JSON values the fields, from `encode_struct`; empty: text that is known to be JSON."""
    file_bytes: int = DEFAULT_FILE_BYTES
    security: "SecuritySettings | None" = field(default=None, repr=False)
    """TLS and SASL towards the cluster. It holds secrets: it goes to tasks with their code, and is
    never written into a plan or a manifest."""

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
    ) -> "TaskSettings":
        """What options say; CliError names the one that is wrong, and what it may be."""
        names = _names(columns) or DEFAULT_COLUMNS
        for name in names:
            if name not in TYPES:
                raise _unknown("--columns", name, TYPES)
        return cls(
            staging="",
            isolation=_choice(IsolationLevel, "--isolation", isolation),
            export_format=_choice(ExportFormat, "--format", export_format),
            columns=tuple(name for name in TYPES if name in names),
            partition_by=tuple(
                _choice(PartitionColumn, "--partition-by", name) for name in _names(partition_by)
            ),
            key_type=_choice(ContentType, "--key", key_type),
            value_type=_choice(ContentType, "--value", value_type),
            value_schema="" if schema_file is None else read_schema(schema_file),
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it; without `security`."""
        fields = asdict(replace(self, security=None))
        del fields["security"]
        return fields

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "TaskSettings":
        """What `to_json` gave."""
        return cls(
            **{
                **fields,
                "isolation": IsolationLevel(fields["isolation"]),
                "export_format": ExportFormat(fields["export_format"]),
                "columns": tuple(fields["columns"]),
                "partition_by": tuple(PartitionColumn(name) for name in fields["partition_by"]),
                "key_type": ContentType(fields["key_type"]),
                "value_type": ContentType(fields["value_type"]),
            }
        )
