"""Exports that are added to a directory are readable with the others as one table."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.spark.decoding.ddl import parse_ddl
from kctl.spark.decoding.schema import encode_struct, infer_struct
from kctl.spark.driver import ExportRequest, Mode, _plan
from kctl.spark.engine.local import LocalOptions
from kctl.spark.planning.continuation import continue_settings
from kctl.spark.planning.plan import Plan
from kctl.spark.planning.selection import Selection
from kctl.spark.planning.settings import (
    ContentType,
    ExportFormat,
    PartitionColumn,
    TaskSettings,
)
from kctl.spark.publishing.export_directory import LocalExportDirectory
from tests.spark.support import export_without_spark, write_log

JSON = TaskSettings("", value_type=ContentType.JSON)
ID_ONLY = encode_struct(parse_ddl("id BIGINT"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"export_format": ExportFormat.JSONL}, "--format jsonl: .* have parquet"),
        ({"columns": ("offset", "value")}, "--columns offset,value: .* have topic,partition,"),
        ({"partition_by": (PartitionColumn.DATE,)}, "--partition-by date: .* have none"),
        ({"key_type": ContentType.STRING}, "--key string: .* have binary"),
        ({"value_type": ContentType.JSON}, "--value json: .* have binary"),
    ],
)
def test_regression_export_with_other_columns_is_refused(
    changes: dict[str, Any], problem: str
) -> None:
    previous = TaskSettings("").to_json()
    with pytest.raises(CliError, match=problem):
        continue_settings(replace(TaskSettings(""), **changes), previous)


def test_same_settings_are_continued() -> None:
    assert continue_settings(TaskSettings(""), TaskSettings("").to_json()) == TaskSettings("")


def test_schema_given_again_must_be_the_same() -> None:
    previous = replace(JSON, value_schema=ID_ONLY).to_json()
    same = replace(JSON, value_schema=ID_ONLY)
    assert continue_settings(same, previous) == same
    other = replace(JSON, value_schema=encode_struct(parse_ddl("id STRING")))
    with pytest.raises(CliError, match="--schema differs"):
        continue_settings(other, previous)


def plan_increment(tmp_path: Path, target: LocalExportDirectory, settings: TaskSettings) -> Plan:
    request = ExportRequest(
        str(target.path),
        Selection(("t",)),
        settings,
        Mode.INCREMENTAL,
        (tmp_path / "logs",),
        1 << 30,
        LocalOptions(),
    )
    return _plan(request, target, Session(None))


def test_regression_schema_of_the_first_export_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "t-0"
    target = LocalExportDirectory(str(tmp_path / "out"))
    first, second = b'{"id": 1}', b'{"id": "text", "more": 1}'
    kind = infer_struct([first])
    assert kind is not None
    settings = replace(JSON, value_schema=encode_struct(kind), is_schema_inferred=True)
    write_log(log, [[(0, 0, None, first, ())]])
    export_without_spark(tmp_path / "logs", target, "t", settings=settings)
    write_log(log, [[(0, 0, None, first, ())], [(1, 0, None, second, ())]])
    plan = plan_increment(tmp_path, target, JSON)
    assert plan.options["value_schema"] == ID_ONLY
    assert plan.options["is_schema_inferred"] is True
    assert [(each.first_offset, each.end_offset) for each in plan.ranges] == [(1, 2)]


def test_schema_is_inferred_after_an_export_without_records(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "t-0"
    log.mkdir(parents=True)
    target = LocalExportDirectory(str(tmp_path / "out"))
    export_without_spark(tmp_path / "logs", target, "t", settings=JSON)
    write_log(log, [[(0, 0, None, b'{"id": 1}', ())]])
    assert plan_increment(tmp_path, target, JSON).options["value_schema"] == ID_ONLY
