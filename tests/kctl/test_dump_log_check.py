"""`kctl dump-log check` finds damage; `repair` copies the undamaged part."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kctl.dump.reading.readers import open_records
from tests.log.support import golden_copy
from tests.support.broker import running_broker
from tests.support.kctl import Kctl

LOGS = Path(__file__).parents[1] / "golden" / "logs"
MAGIC_2 = LOGS / "magic2"


def findings(kctl: Kctl, directory: Path) -> list[dict[str, Any]]:
    result = kctl("dump-log", "check", str(directory), "-o", "json")
    assert result.exit_code == (3 if result.json else 0)
    found: list[dict[str, Any]] = result.json
    return found


def places(kctl: Kctl, directory: Path) -> list[tuple[str, str, int | None]]:
    """(check, file name, position) of each finding."""
    return [
        (row["check"], Path(row["file"]).name, row["position"]) for row in findings(kctl, directory)
    ]


@pytest.fixture
def rolled(tmp_path: Path) -> Path:
    """A sound partition of five segments, to be damaged."""
    return golden_copy(MAGIC_2 / "rolled-0", tmp_path / "rolled-0")


def change(path: Path, edit: Callable[[bytearray], object]) -> None:
    data = bytearray(path.read_bytes())
    edit(data)
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["magic2", "magic1", "magic0"])
def test_logs_of_kafka_have_no_findings(kctl: Kctl, name: str) -> None:
    result = kctl("dump-log", "check", str(LOGS / name))

    assert (result.output, result.stderr) == ("no problems found\n", "")
    assert result.exit_code == 0


def test_check_changes_nothing(kctl: Kctl, tmp_path: Path) -> None:
    copy = golden_copy(LOGS / "corrupt", tmp_path / "copy")
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}

    kctl("dump-log", "check", str(copy))

    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_finding_names_file_position_problem_and_remedy(kctl: Kctl) -> None:
    flipped = LOGS / "corrupt/flipped-0"

    result = kctl("dump-log", "check", str(flipped))

    assert result.output == (
        f"{flipped}/00000000000000000340.log position 7744: expected crc 3417655663, "
        "found 1882698824; copy the undamaged part with `kctl dump-log repair`, "
        "or let the broker truncate the log\n"
    )
    assert result.exit_code == 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "torn-0",
            [
                ("batch", "00000000000000001310.log", 9252),
                ("index", "00000000000000001310.index", 136),
                ("timeindex", "00000000000000001310.timeindex", 204),
                ("snapshot", "00000000000000001500.snapshot", None),
            ],
        ),
        ("zerotail-0", [("batch", "00000000000000001310.log", 9766)]),
        ("flipped-0", [("crc", "00000000000000000340.log", 7744)]),
        (
            "badindex-0",
            [
                ("timeindex", "00000000000000000340.timeindex", 120),
                ("index", "00000000000000000340.index", 160),
                ("index", "00000000000000000340.index", 168),
            ],
        ),
    ],
)
def test_golden_damage_is_reported_with_its_position(
    kctl: Kctl, name: str, expected: list[tuple[str, str, int | None]]
) -> None:
    assert places(kctl, LOGS / "corrupt" / name) == expected


def offsets_in(directory: Path) -> set[int]:
    """The offsets of the batches that can be read."""
    return {
        offset
        for path in directory.glob("*.log")
        for _, batch in open_records(path).batches()
        for offset in range(batch.header.base_offset, batch.last_offset + 1)
    }


class TestDamage:
    """One thing broken in a sound partition, one finding that names it."""

    def test_missing_indexes(self, kctl: Kctl, rolled: Path) -> None:
        (rolled / "00000000000000000340.index").unlink()
        (rolled / "00000000000000000670.timeindex").unlink()

        assert places(kctl, rolled) == [
            ("index", "00000000000000000340.index", None),
            ("timeindex", "00000000000000000670.timeindex", None),
        ]

    def test_index_truncated_inside_an_entry(self, kctl: Kctl, rolled: Path) -> None:
        change(rolled / "00000000000000000340.index", lambda data: data.pop())

        assert [row[:2] for row in places(kctl, rolled)] == [
            ("index", "00000000000000000340.index")
        ]

    def test_closed_time_index_without_its_last_entries(self, kctl: Kctl, rolled: Path) -> None:
        change(
            rolled / "00000000000000000340.timeindex",
            lambda data: data.__delitem__(slice(-24, None)),
        )

        (found,) = findings(kctl, rolled)

        assert found["check"] == "timeindex"
        assert (
            "ends with timestamp 1700000006490, the segment with 1700000006690" in found["problem"]
        )

    def test_zeros_at_the_end_of_an_active_index_are_not_damage(
        self, kctl: Kctl, rolled: Path
    ) -> None:
        change(rolled / "00000000000000001310.index", lambda data: data.extend(bytes(4096)))
        change(rolled / "00000000000000001310.timeindex", lambda data: data.extend(bytes(1200)))

        assert findings(kctl, rolled) == []

    def test_active_index_without_entries_is_not_damage(self, kctl: Kctl, tmp_path: Path) -> None:
        partition = golden_copy(MAGIC_2 / "grp-0", tmp_path / "grp-0")
        for suffix in ("index", "timeindex"):
            (partition / f"{0:020d}.{suffix}").write_bytes(bytes(2400))

        assert findings(kctl, partition) == []

    def test_missing_segment_is_a_gap(self, kctl: Kctl, rolled: Path) -> None:
        for path in rolled.glob("00000000000000000340.*"):
            path.unlink()

        (gap,) = findings(kctl, rolled)

        assert gap["problem"] == "offsets 340 to 669 are missing"
        assert gap["check"] == "gap"

    def test_segment_with_a_wrong_name_is_out_of_order(self, kctl: Kctl, rolled: Path) -> None:
        shutil.copy(rolled / "00000000000000000000.log", rolled / "00000000000000000340.log")

        found = findings(kctl, rolled)

        assert found[0]["problem"] == "begins with offset 0, expected 340 or above"
        assert {row["check"] for row in found} == {"order", "index", "timeindex", "gap"}

    def test_offset_of_the_next_segment_is_reported(self, kctl: Kctl, rolled: Path) -> None:
        (rolled / "00000000000000000670.log").rename(rolled / "00000000000000000660.log")
        for suffix in ("index", "timeindex"):
            (rolled / f"00000000000000000670.{suffix}").unlink()

        assert ("order", "00000000000000000340.log", 15488) in places(kctl, rolled)

    def test_epochs_that_do_not_increase(self, kctl: Kctl, rolled: Path) -> None:
        (rolled / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n0 100\n")

        assert ("epoch", "leader-epoch-checkpoint", None) in places(kctl, rolled)

    def test_epoch_missing_in_the_checkpoint(self, kctl: Kctl, rolled: Path) -> None:
        (rolled / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 1490\n")

        (found,) = findings(kctl, rolled)

        assert found["problem"] == "leader epoch 0, leader-epoch-checkpoint says 1"

    def test_decreasing_epoch(self, kctl: Kctl, rolled: Path) -> None:
        (rolled / "leader-epoch-checkpoint").unlink()
        change(rolled / "00000000000000000000.log", lambda data: data.__setitem__(15, 4))

        found = findings(kctl, rolled)

        assert found[0]["problem"] == "leader epoch 0 follows 4"

    def test_damaged_snapshot(self, kctl: Kctl, tmp_path: Path) -> None:
        partition = golden_copy(MAGIC_2 / "txn-0", tmp_path / "txn-0")
        change(partition / "00000000000000000266.snapshot", lambda data: data.pop())

        assert places(kctl, partition) == [("snapshot", "00000000000000000266.snapshot", None)]

    def test_snapshot_with_a_wrong_offset_in_its_name(self, kctl: Kctl, tmp_path: Path) -> None:
        partition = golden_copy(MAGIC_2 / "txn-0", tmp_path / "txn-0")
        newest = partition / "00000000000000000266.snapshot"
        newest.rename(partition / "00000000000000000100.snapshot")

        problems = [row["problem"] for row in findings(kctl, partition)]

        assert problems == [
            "producer 1 is beyond the snapshot's offset",
            "producer 2 is beyond the snapshot's offset",
        ]

    def test_aborted_transaction_without_its_marker(self, kctl: Kctl, tmp_path: Path) -> None:
        partition = golden_copy(MAGIC_2 / "txn-0", tmp_path / "txn-0")
        change(partition / "00000000000000000040.txnindex", lambda data: data.__setitem__(25, 82))

        (found,) = findings(kctl, partition)

        assert found["problem"] == "producer 2 has no abort marker at offset 82"

    def test_leftover_and_unknown_files(self, kctl: Kctl, rolled: Path) -> None:
        (rolled / "00000000000000000000.log.swap").touch()
        (rolled / "notes.txt").touch()

        assert places(kctl, rolled) == [
            ("leftover", "00000000000000000000.log.swap", None),
            ("name", "notes.txt", None),
        ]

    def test_regression_files_marked_for_deletion_are_not_leftovers(
        self, kctl: Kctl, rolled: Path
    ) -> None:
        for path in list(rolled.glob("00000000000000000000.*")):
            shutil.copy(path, path.with_name(f"{path.name}.deleted"))

        assert places(kctl, rolled) == []

    @pytest.mark.parametrize("metadata", [None, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"])
    def test_regression_partition_without_a_segment_is_checked_with_the_others(
        self, kctl: Kctl, rolled: Path, metadata: str | None
    ) -> None:
        (rolled.parent / "gone-0").mkdir()
        if metadata is not None:
            (rolled.parent / "gone-0" / "partition.metadata").write_text(metadata)
        (rolled / "notes.txt").touch()

        assert places(kctl, rolled.parent) == [("name", "notes.txt", None)]

    def test_regression_directory_marked_for_deletion_is_not_compared_with_checkpoints(
        self, kctl: Kctl, rolled: Path
    ) -> None:
        (rolled.parent / f"rolled-0.{'a' * 32}-delete").mkdir()
        (rolled.parent / "recovery-point-offset-checkpoint").write_text("0\n1\nrolled 0 100\n")

        assert places(kctl, rolled.parent) == []

    def test_invalid_topic_id(self, kctl: Kctl, rolled: Path) -> None:
        (rolled / "partition.metadata").write_text("version: 0\ntopic_id: nonsense")

        assert places(kctl, rolled) == [("metadata", "partition.metadata", None)]


class TestLogDirectory:
    @pytest.fixture
    def log_dir(self, tmp_path: Path) -> Path:
        golden_copy(MAGIC_2 / "txn-0", tmp_path / "logs/txn-0")
        (tmp_path / "logs/meta.properties").write_text("version=0\nbroker.id=1\n")
        return tmp_path / "logs"

    @pytest.mark.parametrize(
        "name",
        [
            "recovery-point-offset-checkpoint",
            "replication-offset-checkpoint",
            "log-start-offset-checkpoint",
            "cleaner-offset-checkpoint",
        ],
    )
    def test_checkpoint_beyond_the_end_of_its_log(
        self, kctl: Kctl, log_dir: Path, name: str
    ) -> None:
        (log_dir / name).write_text("0\n2\ntxn 0 267\nelsewhere 3 99\n")

        (found,) = findings(kctl, log_dir)

        assert found["file"] == str(log_dir / name)
        assert found["problem"] == "txn-0 has offset 267, its log ends at 266"

    def test_checkpoint_and_properties_that_cannot_be_read(self, kctl: Kctl, log_dir: Path) -> None:
        (log_dir / "recovery-point-offset-checkpoint").write_text("0\n9\ntxn 0 1\n")
        (log_dir / "meta.properties").write_text("version=x\n")

        assert [row[:2] for row in places(kctl, log_dir)] == [
            ("checkpoint", "recovery-point-offset-checkpoint"),
            ("metadata", "meta.properties"),
        ]

    def test_directory_without_logs_is_an_error_and_the_others_are_checked(
        self, kctl: Kctl, tmp_path: Path
    ) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()

        result = kctl("dump-log", "check", str(empty), str(LOGS / "corrupt/flipped-0"))

        assert result.stderr == (
            f"error: {empty}: no log segments and no partitions in this directory\n"
        )
        assert "expected crc" in result.output
        assert result.exit_code == 1

    def test_regression_directory_without_logs_is_not_reported_as_healthy(
        self, kctl: Kctl, tmp_path: Path
    ) -> None:
        result = kctl("dump-log", "check", str(tmp_path))
        assert (result.exit_code, result.output) == (1, "")
        assert "no log segments" in result.stderr


class TestRepair:
    def repair(self, kctl: Kctl, source: Path, target: Path, *options: str) -> list[dict[str, Any]]:
        result = kctl(
            "dump-log", "repair", str(source), "--to", str(target), *options, "-o", "json"
        )
        assert (result.stderr, result.exit_code) == ("", 0)
        done: list[dict[str, Any]] = result.json
        return done

    @pytest.mark.parametrize("name", ["torn-0", "zerotail-0", "flipped-0", "badindex-0"])
    def test_copy_has_no_findings_and_the_rest_is_listed_to_the_byte(
        self, kctl: Kctl, tmp_path: Path, name: str
    ) -> None:
        source, target = LOGS / "corrupt" / name, tmp_path / name

        done = self.repair(kctl, source, target)

        assert findings(kctl, target) == []
        for old in source.glob("*.log"):
            kept = sum(r["bytes"] for r in done if r["file"] == str(old) and r["action"] == "kept")
            lost = sum(
                r["bytes"]
                for r in done
                if r["file"] == str(old) and r["action"] in ("cut", "dropped")
            )
            assert kept + lost == old.stat().st_size
            new = target / old.name
            assert kept == (new.stat().st_size if new.exists() else 0)
            assert not kept or new.read_bytes() == old.read_bytes()[:kept]

    def test_log_ends_at_the_first_damage(self, kctl: Kctl, tmp_path: Path) -> None:
        done = self.repair(kctl, LOGS / "corrupt/flipped-0", tmp_path / "new-0")

        (cut,) = [row for row in done if row["action"] == "cut"]
        assert (cut["position"], cut["first_offset"], cut["last_offset"]) == (7744, 500, 669)
        assert cut["reason"] == "expected crc 3417655663, found 1882698824"
        dropped = [(r["first_offset"], r["last_offset"]) for r in done if r["action"] == "dropped"]
        assert dropped == [(670, 999), (1000, 1309), (1310, 1499)]

    def test_later_segments_can_be_kept(self, kctl: Kctl, tmp_path: Path) -> None:
        target = tmp_path / "new-0"

        self.repair(kctl, LOGS / "corrupt/flipped-0", target, "--keep-later-segments")

        assert [row["problem"] for row in findings(kctl, target)] == [
            "offsets 500 to 669 are missing"
        ]

    def test_intact_batches_behind_a_damaged_one_can_be_kept(
        self, kctl: Kctl, tmp_path: Path
    ) -> None:
        target = tmp_path / "new-0"

        done = self.repair(kctl, LOGS / "corrupt/flipped-0", target, "--skip-damaged")

        (lost,) = [row for row in done if row["action"] == "dropped"]
        assert (lost["position"], lost["reason"]) == (7744, "bad crc")
        whole = offsets_in(LOGS / "corrupt/flipped-0")
        missing = sorted(whole - offsets_in(target))
        assert (missing[0], len(missing) < 50) == (500, True)
        problems = [row["problem"] for row in findings(kctl, target)]
        assert problems == [f"offsets {missing[0]} to {missing[-1]} are missing"]
        for old in (LOGS / "corrupt/flipped-0").glob("*.log"):
            kept = b"".join(
                old.read_bytes()[row["position"] : row["position"] + row["bytes"]]
                for row in done
                if row["file"] == str(old) and row["action"] == "kept"
            )
            assert (target / old.name).read_bytes() == kept

    @pytest.mark.parametrize("field", [8, 16, 61])
    def test_next_batch_is_found_behind_a_damaged_length_magic_or_record(
        self, kctl: Kctl, rolled: Path, tmp_path: Path, field: int
    ) -> None:
        path = sorted(rolled.glob("*.log"))[1]
        sizes = [batch.size_in_bytes for _, batch in open_records(path).batches()]
        change(path, lambda data: data.__setitem__(sizes[0] + field, 0x7F))
        before = path.read_bytes()

        done = self.repair(kctl, rolled, tmp_path / "new-0", "--skip-damaged")

        lost = [row for row in done if row["action"] == "dropped"]
        assert [(row["position"], row["bytes"]) for row in lost] == [(sizes[0], sizes[1])]
        salvaged = (tmp_path / "new-0" / path.name).read_bytes()
        assert salvaged == before[: sizes[0]] + before[sizes[0] + sizes[1] :]

    def test_broker_serves_a_log_with_gaps(self, kctl: Kctl, tmp_path: Path) -> None:
        log_dir = tmp_path / "data"
        with running_broker(tmp_path) as broker:
            servers = ("-b", broker.bootstrap_servers)
            kctl("topics", "create", "salvaged", "-p", "1", *servers)
            for word in ("one", "two", "three"):
                kctl("produce", "salvaged", *servers, stdin=f"{word}\n")
        path = log_dir / "salvaged-0" / "00000000000000000000.log"
        change(path, lambda data: data.__setitem__(data.index(b"two"), 0x7F))
        self.repair(kctl, log_dir / "salvaged-0", tmp_path / "new-0", "--skip-damaged")
        shutil.rmtree(log_dir / "salvaged-0")
        shutil.move(tmp_path / "new-0", log_dir / "salvaged-0")
        with running_broker(tmp_path) as broker:
            read = kctl("consume", "salvaged", "--exit", "-b", broker.bootstrap_servers)
        assert read.output == "one\nthree\n"

    def test_indexes_are_those_that_kafka_wrote(self, kctl: Kctl, tmp_path: Path) -> None:
        damaged = golden_copy(MAGIC_2 / "rolled-0", tmp_path / "rolled-0")
        for path in damaged.glob("*index"):
            path.write_bytes(b"nonsense")

        self.repair(kctl, damaged, tmp_path / "new-0", "--index-interval-bytes", "100")

        for path in (MAGIC_2 / "rolled-0").glob("*index"):
            assert (tmp_path / "new-0" / path.name).read_bytes() == path.read_bytes()

    def test_log_directory_is_copied_with_its_checkpoints(self, kctl: Kctl, tmp_path: Path) -> None:
        source = golden_copy(MAGIC_2, tmp_path / "old")
        last = source / "rolled-0/00000000000000001310.log"
        last.write_bytes(last.read_bytes()[:-1])

        self.repair(kctl, source, tmp_path / "new")

        assert findings(kctl, tmp_path / "new") == []
        checkpoint = (tmp_path / "new/recovery-point-offset-checkpoint").read_text()
        assert "rolled 0 1490\n" in checkpoint
        assert "trimmed 0 321\n" in (tmp_path / "new/log-start-offset-checkpoint").read_text()
        assert (tmp_path / "new/meta.properties").exists()

    def test_damaged_directory_is_not_changed(self, kctl: Kctl, tmp_path: Path) -> None:
        source = golden_copy(LOGS / "corrupt/torn-0", tmp_path / "old-0")
        before = {path: path.read_bytes() for path in source.iterdir()}

        self.repair(kctl, source, tmp_path / "new-0")

        assert {path: path.read_bytes() for path in source.iterdir()} == before

    def test_unreadable_small_files_are_dropped_and_listed(
        self, kctl: Kctl, rolled: Path, tmp_path: Path
    ) -> None:
        (rolled / "leader-epoch-checkpoint").write_text("7\n0\n")
        (rolled / "00000000000000001500.snapshot").write_bytes(b"no")
        (rolled / "notes.txt").touch()

        done = self.repair(kctl, rolled, tmp_path / "new-0")

        dropped = {Path(row["file"]).name for row in done if row["action"] == "dropped"}
        assert dropped == {
            "leader-epoch-checkpoint",
            "00000000000000001500.snapshot",
            "notes.txt",
        }
        assert findings(kctl, tmp_path / "new-0") == []

    def test_target_must_be_new_and_elsewhere(
        self, kctl: Kctl, rolled: Path, tmp_path: Path
    ) -> None:
        used = tmp_path / "used"
        used.mkdir()
        (used / "precious").touch()

        into_used = kctl("dump-log", "repair", str(rolled), "--to", str(used))
        into_itself = kctl("dump-log", "repair", str(rolled), "--to", str(rolled / "new"))

        assert into_used.stderr.startswith(f"error: {used}: not empty")
        assert into_itself.stderr.startswith(f"error: {rolled / 'new'}: inside ")
        assert into_used.exit_code == into_itself.exit_code == 1
        assert list(used.iterdir()) == [used / "precious"]

    def test_missing_directory_is_an_error(self, kctl: Kctl, tmp_path: Path) -> None:
        missing = tmp_path / "missing"

        result = kctl("dump-log", "repair", str(missing), "--to", str(tmp_path / "new"))

        assert result.stderr == f"error: {missing}: no such file or directory\n"
        assert result.exit_code == 1
