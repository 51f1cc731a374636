"""`kctl spark-export` without Spark: plans, errors, verification."""

import json
import os
from pathlib import Path

import pytest

from kctl.spark.publishing.export_directory import LocalExportDirectory
from tests.spark.support import LOGS, export_without_spark, make_plan
from tests.support.kctl import Kctl


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "out")


def test_dry_run_shows_tasks_ranges_and_bytes_and_writes_nothing(kctl: Kctl, out: str) -> None:
    result = kctl(
        "spark-export",
        "txn",
        "rolled",
        "--from-dir",
        str(LOGS),
        "--to",
        out,
        "--dry-run",
        "-o",
        "json",
    )
    assert result.exit_code == 0
    assert {(row["task"], row["topic"]) for row in result.json} == {(0, "rolled"), (0, "txn")}
    assert result.json[-1]["end_offset"] == 266
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nosuch", "--from-dir", str(LOGS)], 1, "no topic matches nosuch"),
        (["txn", "--from-dir", "/nowhere"], 1, "/nowhere: no such file or directory"),
        (["--from-dir", str(LOGS)], 2, "no topic specified"),
        (["txn"], 2, "no cluster specified"),
        (["txn", "-b", "127.0.0.1:1"], 1, "cannot reach the cluster"),
        (["txn", "--append", "--overwrite"], 2, "--append and --overwrite are mutually exclusive"),
        (["txn", "--format", "xls"], 2, "--format xls: unknown"),
        (["txn", "--columns", "offset,size"], 2, "--columns size: unknown"),
        (["txn", "--partition-by", "key"], 2, "--partition-by key: unknown"),
        (["txn", "--isolation", "dirty"], 2, "--isolation dirty: unknown"),
        (["txn", "--since", "tomorrow"], 2, "--since tomorrow: expected a time"),
        (["txn", "--until", "12:00"], 2, "--until 12:00: expected a time"),
        (["txn", "--partition-by", "date,date"], 2, "--partition-by date,date: repeated name"),
        (["txn", "--columns", "topic", "--partition-by", "topic"], 2, "would have no columns"),
        (["txn", "--conf", "spark.x", "--from-dir", str(LOGS)], 2, "expected KEY=VALUE"),
        (["--resume"], 1, "no export to resume"),
        (["txn", "--resume"], 2, "TOPIC has no effect with --resume"),
        (["--resume", "--format", "csv"], 2, "--format has no effect with --resume"),
        (["txn", "--from-dir", str(LOGS), "-b", "x:1"], 2, "-b and --from-dir are mutually"),
        (["txn", "--from-dir", str(LOGS), "--schema", "id INT"], 2, "--schema needs --value json"),
        (["txn", "--from-dir", f"{LOGS}/txn-0"], 2, "txn-0: is the directory of one partition"),
        (["--since", "2027-01-01", "--until", "2026-01-01"], 2, "is not before --until"),
        (["txn", "--from-dir", str(LOGS), "--value", "json", "--schema", ""], 1, "is a directory"),
        (["txn", "-b", "127.0.0.1:1", "--offsets", "/nowhere"], 1, "/nowhere: no such file"),
    ],
)
def test_invalid_input_is_a_one_line_error_and_leaves_no_files(
    kctl: Kctl, out: str, arguments: list[str], status: int, said: str
) -> None:
    result = kctl("spark-export", *arguments, "--to", out)
    assert result.exit_code == status, result.stderr
    assert said in result.stderr.splitlines()[0]
    assert not Path(out).exists()


def test_regression_schema_file_without_columns_is_refused(
    kctl: Kctl, out: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.ddl").touch()
    words = ("txn", "--from-dir", str(LOGS), "--to", out, "--value", "json")
    result = kctl("spark-export", *words, "--schema", str(tmp_path / "empty.ddl"))
    assert (result.exit_code, "names no columns" in result.stderr) == (2, True)


def test_regression_home_and_file_urls_are_local_paths_and_nothing_is_an_error(
    kctl: Kctl, tmp_path: Path
) -> None:
    words = ("spark-export", "txn", "--from-dir", str(LOGS), "--engine", "local", "--to")
    environment = {**os.environ, "HOME": str(tmp_path)}
    for given, there in (("~/home", "home"), (f"file:{tmp_path}/short", "short")):
        result = kctl(*words, given, env=environment)
        assert result.exit_code == 0, result.stderr
        assert (tmp_path / there / "export=00001").is_dir()
    empty = kctl(*words, "")
    assert (empty.exit_code, empty.stderr.splitlines()[0]) == (2, "error: --to is empty")


def test_regression_files_that_readers_ignore_do_not_make_a_directory_foreign(
    kctl: Kctl, out: str
) -> None:
    words = ("spark-export", "txn", "--from-dir", str(LOGS), "--engine", "local", "--to", out)
    assert kctl(*words).exit_code == 0
    for name in (".DS_Store", "_SUCCESS"):
        Path(out, name).touch()
    result = kctl(*words, "--incremental")
    assert result.exit_code == 0, result.stderr


def test_quiet_run_prints_its_json_and_losses_only(kctl: Kctl, out: str) -> None:
    words = ("spark-export", "txn", "--from-dir", str(LOGS), "--engine", "local", "--to", out)
    first = kctl(*words, "--quiet")
    assert (first.exit_code, first.output, first.stderr) == (0, "", "")
    again = kctl(*words, "--incremental", "-q")
    assert (again.exit_code, again.output, again.stderr) == (0, "", "")
    aside = kctl(*words, "--append", "-q", "--value", "json", "-o", "json")
    assert aside.exit_code == 1  # other settings than before: errors are printed
    assert "--value" in aside.stderr
    ddl = Path(out).with_name("schema.ddl")
    ddl.write_text("id INT")
    losses = kctl(*words, "--overwrite", "-q", "--value", "json", "--schema", str(ddl))
    assert (losses.exit_code, losses.output) == (0, "")
    assert "could not be decoded" in losses.stderr


def test_offsets_out_of_range_are_refused(kctl: Kctl, out: str, tmp_path: Path) -> None:
    entry = {"topic": "txn", "partition": 0, "first_offset": 0, "end_offset": 9999}
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"partitions": [entry]}))
    result = kctl(
        "spark-export", "txn", "--from-dir", str(LOGS), "--to", out, "--offsets", str(offsets)
    )
    assert result.exit_code == 1
    assert "offsets 0 to 9999 are out of range" in result.stderr
    assert not Path(out).exists()


def test_directory_with_an_export_needs_an_explicit_mode(kctl: Kctl, out: str) -> None:
    export_without_spark(LOGS, LocalExportDirectory(out), "txn")
    result = kctl("spark-export", "txn", "--from-dir", str(LOGS), "--to", out)
    assert result.exit_code == 1
    assert "already contains an export" in result.stderr
    for flag in ("--append", "--incremental", "--overwrite"):
        assert flag in result.stderr


def test_regression_second_run_does_not_remove_the_files_of_the_first(kctl: Kctl, out: str) -> None:
    other = LocalExportDirectory(out).staging
    with other.locked():
        other.begin(make_plan(LOGS, LocalExportDirectory(out), "txn"))
        result = kctl("spark-export", "txn", "--from-dir", str(LOGS), "--to", out, "--append")
        assert result.exit_code == 1
        assert "is running" in result.stderr
        assert other.is_resumable


@pytest.mark.parametrize("flag", ["--append", "--overwrite", "--incremental"])
def test_directory_with_other_files_is_refused(kctl: Kctl, tmp_path: Path, flag: str) -> None:
    (tmp_path / "thesis.txt").touch()
    result = kctl("spark-export", "txn", "--from-dir", str(LOGS), "--to", str(tmp_path), flag)
    assert result.exit_code == 1
    assert "contains files that are not exports" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_directory_is_named(kctl: Kctl, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    result = kctl("spark-export", "txn", "--from-dir", str(LOGS), "--to", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "permission denied" in result.stderr


class TestVerify:
    def test_intact_export_agrees_with_its_source(self, kctl: Kctl, out: str) -> None:
        export_without_spark(LOGS, LocalExportDirectory(out), "txn", "compacted", "codec-.*")
        result = kctl("spark-export", "verify", out, "--from-dir", str(LOGS))
        assert result.exit_code == 0, result.output
        assert "no problems found" in result.stderr

    def test_records_missing_in_the_source_are_reported(
        self, kctl: Kctl, out: str, tmp_path: Path
    ) -> None:
        export_without_spark(LOGS, LocalExportDirectory(out), "txn")
        (tmp_path / "empty").mkdir()
        arguments = (out, "--from-dir", str(tmp_path / "empty"), "-o", "json")
        result = kctl("spark-export", "verify", *arguments)
        assert result.exit_code == 3
        assert [finding["problem"] for finding in result.json] == ["is not in the source"]

    def test_different_record_count_is_reported(self, kctl: Kctl, out: str) -> None:
        target = LocalExportDirectory(out)
        export_without_spark(LOGS, target, "plain")
        path = target.export_path(1) / "_manifest.json"
        path.write_text(path.read_text().replace('"records": 200', '"records": 199'))
        problems = kctl("spark-export", "verify", out, "--from-dir", str(LOGS), "-o", "json").json
        assert {"exported 199 records, found 200"} <= {each["problem"] for each in problems}

    def test_directory_without_exports_is_an_error(self, kctl: Kctl, tmp_path: Path) -> None:
        result = kctl("spark-export", "verify", str(tmp_path))
        assert result.exit_code == 1
        assert "contains no exports" in result.stderr
