"""Export directories that Spark writes to: Hadoop file systems, and formats of Spark."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from kctl.spark.engine.spark_files import READ_OPTIONS
from kctl.spark.manifest_checks import verify_files
from kctl.spark.planning.settings import ExportFormat
from kctl.spark.publishing.export_directory import ExportDirectory
from kctl.spark.publishing.spark_export_directory import SparkExportDirectory
from tests.spark.support import LOGS, exported, kafka_printed, sizes, write_log
from tests.support.kctl import Kctl

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]


@pytest.fixture
def to(lake: Path, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A directory for one test: its address, and where it is."""
    name = request.node.name.partition("[")[0]
    return f"viewfs://lake/data/{name}", lake / name


def run(kctl: Kctl, *arguments: object) -> None:
    result = kctl("spark-export", *map(str, arguments))
    assert result.exit_code == 0, result.stderr


def findings(target: ExportDirectory) -> list[str]:
    return [f"{each.what} {each.problem}" for each in verify_files(target, 1)]


def test_export_to_a_hadoop_file_system_is_exact_and_leaves_no_other_files(
    kctl: Kctl, spark: Any, to: tuple[str, Path]
) -> None:
    address, path = to
    run(kctl, "rolled", "txn", "--from-dir", LOGS, "--to", address, "--task-size", 1)
    assert sizes(exported(path, "rolled")) == kafka_printed("magic2", "rolled-0")
    assert len(exported(path, "txn")) == 180
    assert [each.name for each in path.iterdir() if each.name[0] != "."] == ["export=00001"]
    manifest = json.loads((path / "export=00001" / "_manifest.json").read_text())
    assert sum(file["records"] for file in manifest["files"]) == 1680
    assert findings(SparkExportDirectory(spark, address)) == []
    refused = kctl("spark-export", "txn", "--from-dir", str(LOGS), "--to", address)
    assert "already contains an export" in refused.stderr
    run(kctl, "txn", "--from-dir", LOGS, "--to", address, "--overwrite", "--last", 10)
    assert {row["topic"] for row in exported(path)} == {"txn"}


def test_changed_file_on_a_hadoop_file_system_is_reported(
    kctl: Kctl, spark: Any, to: tuple[str, Path]
) -> None:
    address, path = to
    run(kctl, "plain", "--from-dir", LOGS, "--to", address)
    (file,) = (path / "export=00001").glob("part-*")
    (path / "export=00001" / f".{file.name}.crc").unlink()  # Hadoop's own check
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    (found,) = findings(SparkExportDirectory(spark, address))
    assert "expected crc32c" in found


@pytest.mark.parametrize("export_format", ["jsonl", "csv", "orc"])
def test_other_formats_are_partitioned_and_counted(
    kctl: Kctl, spark: Any, lake: Path, export_format: str
) -> None:
    address = f"viewfs://lake/data/{export_format}"
    by = ("--partition-by", "topic,date", "--format", export_format)
    run(kctl, "plain", "--from-dir", LOGS, "--to", address, *by)
    kind = ExportFormat(export_format)
    reader = spark.read.format(kind.spark_name).options(**READ_OPTIONS.get(kind, {}))
    rows = reader.load(address).collect()
    assert len(rows) == 200
    assert {row["topic"] for row in rows} == {"plain"}
    assert list((lake / export_format / "export=00001").glob("topic=plain/date=*/part-*"))
    assert findings(SparkExportDirectory(spark, address)) == []


def test_undecodable_values_are_kept_aside(
    kctl: Kctl, spark: Any, to: tuple[str, Path], tmp_path: Path
) -> None:
    address, path = to
    values = [b"good", b"\xff", b"fine"]
    records = [(at, at, None, value, ()) for at, value in enumerate(values)]
    write_log(tmp_path / "t-0", [records])
    run(kctl, "t", "--from-dir", tmp_path, "--to", address, "--value", "string")
    assert [row["value"] for row in exported(path)] == ["good", "fine"]
    aside = ds.dataset(str(path / "export=00001" / "_undecodable"), ignore_prefixes=["."])
    assert aside.to_table().column("value").to_pylist() == [b"\xff"]
    assert findings(SparkExportDirectory(spark, address)) == []


def test_killed_run_is_finished_by_resume(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, to: tuple[str, Path], spark: Any
) -> None:
    address, path = to
    arguments = ("spark-export", "plain", "--from-dir", str(LOGS), "--to", address)

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ExportDirectory, "commit", die)
        patch.setattr(ExportDirectory, "clean_up", lambda _: None)  # the dead do not clean up
        with pytest.raises(Killed):
            kctl(*arguments)
    assert not list(path.glob("export=*"))
    for mode in ((), ("--append",)):
        refused = kctl(*arguments, *mode)
        assert refused.exit_code == 1
        assert "interrupted" in refused.stderr
    lock = path / "_staging" / "lock"
    assert json.loads(lock.read_text())["pid"] == os.getpid()
    run(kctl, "--resume", "--to", address)
    assert len(exported(path)) == 200
    assert [each.name for each in path.iterdir() if each.name[0] != "."] == ["export=00001"]


def test_regression_lock_of_a_dead_process_without_a_plan_is_taken_over(
    kctl: Kctl, to: tuple[str, Path]
) -> None:
    address, path = to
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    staging = path / "_staging"
    staging.mkdir(parents=True)
    arguments = ("plain", "--from-dir", str(LOGS), "--to", address, "--incremental")
    elsewhere = {"host": "elsewhere.example", "pid": ended.pid}
    (staging / "lock").write_text(json.dumps(elsewhere))
    refused = kctl("spark-export", *arguments)
    assert refused.exit_code == 1
    assert "_staging/lock" in refused.stderr
    (staging / "lock").write_text(json.dumps({**elsewhere, "host": socket.gethostname()}))
    run(kctl, *arguments)
    assert len(exported(path)) == 200


def test_failed_task_leaves_nothing(
    kctl: Kctl, to: tuple[str, Path], spark: Any, tmp_path: Path
) -> None:
    address, path = to
    log = write_log(tmp_path / "t-0", [[(0, 0, None, b"some value", ())]])
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    log.write_bytes(data)
    result = kctl("spark-export", "t", "--from-dir", str(tmp_path), "--to", address)
    assert result.exit_code == 1
    assert "expected crc" in result.stderr.splitlines()[0]
    assert not path.exists()


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("s3a://bucket/x", "--packages org.apache.hadoop:hadoop-aws:"),
        ("nosuch://host/x", "--packages GROUP:ARTIFACT:VERSION"),
    ],
)
def test_missing_file_system_jar_is_a_one_line_error_with_a_hint(
    kctl: Kctl, spark: Any, address: str, hint: str
) -> None:
    result = kctl("spark-export", "txn", "--from-dir", str(LOGS), "--to", address)
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert f"Spark has no file system for {address.partition(':')[0]}://" in first
    assert hint in second


def test_missing_avro_module_is_a_one_line_error_with_a_hint(
    kctl: Kctl, spark: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = kctl(
        "spark-export", "txn", "--from-dir", str(LOGS), "--to", str(out), "--format", "avro"
    )
    assert result.exit_code == 2
    assert "Spark's Avro module is not available" in result.stderr
    assert f"--packages org.apache.spark:spark-avro_2.13:{spark.version}" in result.stderr
    assert not out.exists()
