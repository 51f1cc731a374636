"""`kctl spark-export list` and `compact`."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from kctl.spark.publishing.export_directory import LocalExportDirectory
from tests.spark.support import exported, write_log
from tests.support.kctl import Kctl


def grow(logs: Path, count: int) -> None:
    for partition in (0, 1):
        records = [(at, 1000 + at, b"k", b"v%d" % at, ()) for at in range(count)]
        records[3:4] = [(3, 1003, b"k", b"\xff", ())]  # not UTF-8
        write_log(logs / f"t-{partition}", [[record] for record in records])


def run(kctl: Kctl, logs: Path, out: Path, *arguments: str) -> Any:
    words = ["t", "--from-dir", str(logs), "--to", str(out), "--engine", "local"]
    result = kctl("spark-export", *words, *arguments, "-o", "json")
    assert result.exit_code == 0, result.stderr
    return result.json


@pytest.fixture
def increments(kctl: Kctl, tmp_path: Path) -> Path:
    """Three increments of two partitions, by date, with records set aside."""
    for count in (10, 20, 30):
        grow(tmp_path / "logs", count)
        words = ("--incremental", "--value", "string", "--partition-by", "date")
        run(kctl, tmp_path / "logs", tmp_path / "out", *words)
    return tmp_path / "out"


def test_exports_are_listed(kctl: Kctl, increments: Path) -> None:
    rows = kctl("spark-export", "list", str(increments), "-o", "json").json
    assert [row["export"] for row in rows] == [1, 2, 3]
    assert [row["records"] for row in rows] == [18, 20, 20]
    assert [row["undecodable"] for row in rows] == [2, 0, 0]
    assert {row["mode"] for row in rows} == {"incremental"}
    assert rows[2]["offsets"][1] == {
        "topic": "t",
        "partition": 1,
        "first_offset": 20,
        "end_offset": 30,
    }
    assert "3" in kctl("spark-export", "list", str(increments)).output


def test_compacted_exports_have_the_same_rows_and_can_be_continued(
    kctl: Kctl, increments: Path, tmp_path: Path
) -> None:
    def rows() -> list[dict[str, Any]]:
        return [{**row, "export": None} for row in exported(increments)]

    before = rows()
    result = kctl("spark-export", "compact", str(increments), "-o", "json")
    assert result.exit_code == 0, result.stderr
    assert (result.json["records"], result.json["undecodable"]) == (58, 2)
    assert [path.name for path in increments.iterdir()] == ["export=00001"]
    assert len(list(increments.rglob("*.parquet"))) == 2  # one of them with what was set aside
    assert rows() == before
    source = ("--from-dir", str(tmp_path / "logs"))
    verified = kctl("spark-export", "verify", str(increments), "--deep", *source, "-o", "json")
    assert verified.json == []
    grow(tmp_path / "logs", 35)
    words = ("--incremental", "--value", "string", "--partition-by", "date")
    assert run(kctl, tmp_path / "logs", increments, *words)["records"] == 10


def test_damaged_or_incomplete_exports_are_not_compacted(kctl: Kctl, increments: Path) -> None:
    names = {path.name for path in increments.iterdir()}
    hidden = increments / "export=00003" / ".extra"
    hidden.touch()
    refused = kctl("spark-export", "compact", str(increments))
    assert refused.exit_code == 1
    assert "is not in the manifest" in refused.stderr
    hidden.unlink()
    assert {path.name for path in increments.iterdir()} - {"_staging"} == names
    shutil.rmtree(increments / "export=00002")
    refused = kctl("spark-export", "compact", str(increments))
    assert "offsets 10 to 19 are in no export" in refused.stderr


def test_compaction_killed_while_it_replaces_is_finished_by_resume(
    kctl: Kctl, increments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_aside = LocalExportDirectory._set_aside

    def die(self: LocalExportDirectory) -> None:
        set_aside(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LocalExportDirectory, "_set_aside", die)
        assert kctl("spark-export", "compact", str(increments)).exit_code != 0
    words = ["t", "--from-dir", str(tmp_path / "logs"), "--to", str(increments)]
    refused = kctl("spark-export", *words, "--incremental", "--engine", "local")
    assert refused.exit_code == 1
    assert "--resume finishes it" in refused.stderr
    resumed = kctl("spark-export", "--resume", "--to", str(increments), "--engine", "local")
    assert resumed.exit_code == 0, resumed.stderr
    assert len(exported(increments)) == 58
    assert [path.name for path in increments.iterdir()] == ["export=00001"]
