"""`kctl dump-log show`: tables, JSON, CSV, filters, statistics, invalid input."""

import base64
import contextlib
import csv
import io
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec
from tests.support.kctl import Kctl

LOGS = Path(__file__).parents[1] / "golden" / "logs"
MAGIC_2 = LOGS / "magic2"
NOW_MS = 1_700_000_000_000
NAME = f"{0:020d}.log"


def rows(kctl: Kctl, *args: str | Path) -> list[dict[str, Any]]:
    result = kctl("dump-log", *map(str, args), "-o", "json")
    assert (result.stderr, result.exit_code) == ("", 0)
    found: list[dict[str, Any]] = result.json
    return found


def offsets(kctl: Kctl, *args: str | Path) -> list[int]:
    return [row["offset"] for row in rows(kctl, *args, "--records")]


def on_a_terminal(*args: str) -> list[str]:
    """The lines that a run of kctl writes to a terminal, without colour."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "kctl", *args]
    process = subprocess.Popen(command, stdout=theirs, env=environment)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while data := os.read(ours, 4096):
            seen += data
    assert process.wait(30) == 0
    return seen.decode().splitlines()


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Two batches: text of an idempotent producer with headers, then bytes that are no text."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    first = build_batch(
        [
            (0, NOW_MS, b"alice", b"one", (("trace", b"1"),)),
            (1, NOW_MS + 1000, b"bob", b"two\nlines", (("trace", b"2"),)),
            (2, NOW_MS + 2000, b"alice", None, ()),
        ],
        BatchSettings(producer_id=7, producer_epoch=1, base_sequence=10, codec=Codec.LZ4),
    )
    second = build_batch([(3, NOW_MS + 9000, None, b"\x00\xff", ())], BatchSettings())
    path = directory / NAME
    path.write_bytes(first + second)
    return path


class TestRows:
    def test_batches_are_shown_unless_records_are_asked_for(
        self, kctl: Kctl, segment: Path
    ) -> None:
        first, second = rows(kctl, segment)

        assert first["type"] == "batch"
        assert first["file"] == str(segment)
        assert (first["base_offset"], first["last_offset"], first["count"]) == (0, 2, 3)
        assert (first["codec"], first["producer_id"], first["last_sequence"]) == ("lz4", 7, 12)
        assert first["valid"] is True
        assert (second["producer_id"], second["base_sequence"]) == (None, None)
        assert second["position"] == first["size"]

    def test_record_shows_text_and_base64_with_the_encoding(
        self, kctl: Kctl, segment: Path
    ) -> None:
        first, second, tombstone, binary = rows(kctl, segment, "--records")

        assert (first["key"], first["key_encoding"]) == ("alice", "utf-8")
        assert first["headers"] == [{"key": "trace", "value": "1", "value_encoding": "utf-8"}]
        assert first["time"] == "2023-11-14T22:13:20.000Z"
        assert first["sequence"] == 10
        assert second["value"] == "two\nlines"
        assert (tombstone["value"], tombstone["value_encoding"]) == (None, None)
        assert (binary["key"], binary["key_size"]) == (None, None)
        assert binary["value_encoding"] == "base64"
        assert base64.b64decode(binary["value"]) == b"\x00\xff"

    def test_jsonl_and_yaml_have_the_same_content_as_json(self, kctl: Kctl, segment: Path) -> None:
        import yaml

        expected = rows(kctl, segment, "--records")

        lines = kctl("dump-log", str(segment), "--records", "-o", "jsonl").output.splitlines()
        text = kctl("dump-log", str(segment), "--records", "-o", "yaml").output

        assert list(map(json.loads, lines)) == expected
        assert yaml.safe_load(text) == expected

    def test_csv_has_a_header_and_a_line_per_row_of_the_logs(
        self, kctl: Kctl, segment: Path
    ) -> None:
        text = kctl("dump-log", str(segment.parent), "--records", "-o", "csv").output

        lines = list(csv.DictReader(io.StringIO(text)))
        assert [line["offset"] for line in lines] == ["0", "1", "2", "3"]
        assert lines[1]["value"] == "two\nlines"
        assert lines[2]["value"] == ""

    def test_name_prints_the_offsets(self, kctl: Kctl, segment: Path) -> None:
        assert kctl("dump-log", str(segment), "-o", "name").output == "0\n3\n"

    def test_nothing_to_show_is_an_empty_list(self, kctl: Kctl, segment: Path) -> None:
        assert rows(kctl, segment, "--offset", "99:") == []
        assert kctl("dump-log", str(segment), "--offset", "99:", "-o", "yaml").output == "[]\n"

    def test_internal_topics_are_decoded_by_the_name_of_their_directory(self, kctl: Kctl) -> None:
        group, commit, *_ = rows(kctl, MAGIC_2 / "__consumer_offsets-47", "--records")
        state, *_ = rows(kctl, MAGIC_2 / "__transaction_state-36", "--records")

        assert group["key_encoding"] == "json"
        assert group["key"] == {"type": "2", "data": {"group": "group-a"}}
        assert group["value"]["data"]["members"][0]["subscription"]["topics"] == ["grp"]
        assert commit["value"]["data"]["offset"] == 30
        assert state["key"]["data"] == {"transactionalId": "golden-txn-1"}
        assert state["value"]["data"]["transactionStatus"] == "Empty"

    def test_unknown_record_in_an_internal_topic_is_shown_undecoded(
        self, kctl: Kctl, tmp_path: Path
    ) -> None:
        directory = tmp_path / "__consumer_offsets-0"
        directory.mkdir()
        path = directory / NAME
        path.write_bytes(build_batch([(0, NOW_MS, b"plain key", b"value", ())], BatchSettings()))

        (row,) = rows(kctl, path, "--records")

        assert (row["key"], row["key_encoding"]) == ("plain key", "utf-8")

    def test_control_record_shows_the_outcome_of_the_transaction(self, kctl: Kctl) -> None:
        (row,) = rows(kctl, MAGIC_2 / "txn-0", "--records", "--offset", "81")

        assert row["key"] == {"control_type": "ABORT"}
        assert row["value"] == {"coordinator_epoch": 0}
        assert row["flags"] == ["txn", "control"]

    @pytest.mark.parametrize("partition", sorted(LOGS.glob("magic[01]/*")), ids=lambda p: p.name)
    def test_old_formats_are_shown_too(self, kctl: Kctl, partition: Path) -> None:
        shown = rows(kctl, partition, "--records")

        assert [row["offset"] for row in shown] == list(range(len(shown)))
        assert len(shown) in (120, 200)


class TestOtherFiles:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("rolled-0/00000000000000000000.index", {"offset": 19, "position": 424}),
            (
                "plain-0/00000000000000000000.timeindex",
                {"timestamp": 1700000001590, "offset": 159, "time": "2023-11-14T22:13:21.590Z"},
            ),
            (
                "txn-0/00000000000000000040.txnindex",
                {"producer_id": 2, "first_offset": 41, "last_offset": 81},
            ),
            (
                "txn-0/00000000000000000040.snapshot",
                {"producer_id": 1, "last_sequence": 39, "current_txn_first_offset": 0},
            ),
            ("txn-0/leader-epoch-checkpoint", {"epoch": 0, "start_offset": 0}),
            ("cleaner-offset-checkpoint", {"topic": "compacted", "partition": 0, "offset": 532}),
            ("meta.properties", {"key": "version", "value": 0}),
            ("txn-0/partition.metadata", {"key": "version", "value": 0}),
        ],
    )
    def test_first_row_has_the_fields_of_the_file(
        self, kctl: Kctl, name: str, expected: dict[str, Any]
    ) -> None:
        first, *_ = rows(kctl, MAGIC_2 / name)

        assert {key: first[key] for key in expected} == expected
        assert first["file"] == str(MAGIC_2 / name)

    def test_directory_means_its_files_and_those_of_its_partitions(self, kctl: Kctl) -> None:
        files = {row["file"] for row in rows(kctl, MAGIC_2)}

        assert str(MAGIC_2 / "meta.properties") in files
        assert str(MAGIC_2 / "recovery-point-offset-checkpoint") in files
        assert str(MAGIC_2 / "txn-0/00000000000000000040.txnindex") in files
        assert str(MAGIC_2 / "rolled-0/00000000000000000670.log") in files

    def test_kind_selects_files_of_a_directory(self, kctl: Kctl) -> None:
        chosen = rows(kctl, MAGIC_2 / "txn-0", "--kind", "snapshot", "--kind", "epochs")

        assert {row["type"] for row in chosen} == {"producer", "leader_epoch"}

    def test_glob_matches_files(self, kctl: Kctl) -> None:
        files = {row["file"] for row in rows(kctl, f"{MAGIC_2}/codec-*", "--kind", "log")}

        assert len(files) == 4


class TestTable:
    def test_batches_fit_a_hundred_columns(self, kctl: Kctl) -> None:
        lines = kctl("dump-log", str(MAGIC_2 / "idempotent-0"), "--batches").output.splitlines()

        assert lines[0] == str(MAGIC_2 / "idempotent-0" / NAME)
        assert lines[1].split() == (
            ["BASE", "LAST", "COUNT", "POSITION", "SIZE", "CODEC", "TIME", "PRODUCER", "FLAGS"]
        )
        assert lines[2].split() == [
            "0",
            "24",
            "25",
            "0",
            "1024",
            "none",
            "2023-11-14T22:13:20.240Z",
            "0",
            "-",
        ]
        assert max(map(len, lines[1:])) <= 100

    def test_records_fit_a_hundred_columns_of_a_terminal_and_stay_on_one_line(
        self, segment: Path
    ) -> None:
        long = build_batch([(4, NOW_MS, b"k" * 100, b"v" * 1000, ())], BatchSettings())
        segment.write_bytes(segment.read_bytes() + long)

        lines = on_a_terminal("dump-log", str(segment), "--records")

        assert len(lines) == 2 + 5
        assert max(map(len, lines[1:])) <= 100
        assert "two\\nlines" in lines[3]
        assert lines[-1].endswith("v…")

    def test_wide_shows_more(self, kctl: Kctl, segment: Path) -> None:
        lines = kctl("dump-log", str(segment), "--records", "-o", "wide").output.splitlines()

        assert "trace=1" in lines[2]
        assert lines[1].split()[:6] == ["OFFSET", "TIME", "KEY", "VALUE", "HEADERS", "KEY-SIZE"]

    def test_columns_stay_aligned_over_pages(self, kctl: Kctl, tmp_path: Path) -> None:
        path = tmp_path / NAME
        records = [(n, NOW_MS, b"k", b"v" * (n % 30), ()) for n in range(2500)]
        path.write_bytes(build_batch(records, BatchSettings()))

        lines = kctl("dump-log", str(path), "--records").output.splitlines()

        assert len(lines) == 2502
        assert {line.index("2023-11-14") for line in lines[2:]} == {lines[1].index("TIME")}

    def test_files_without_matching_rows_are_omitted(self, kctl: Kctl) -> None:
        text = kctl("dump-log", str(MAGIC_2 / "rolled-0"), "--offset", "700:709").output

        assert text.count(".log") == 1


class TestFilters:
    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            (["--offset", "1:2"], [1, 2]),
            (["--offset", "2:"], [2, 3]),
            (["--offset", ":0"], [0]),
            (["--offset", "2"], [2]),
            (["--time", f"{NOW_MS + 1000}:{NOW_MS + 2000}"], [1, 2]),
            (["--time", "2023-11-14T22:13:21:2023-11-14T22:13:21.999"], [1]),
            (["--time", ":2023-11-14T22:13:20Z"], [0]),
            (["--time", "2023-11-14T22:13:29"], [3]),
            (["--time", "-1s:"], []),
            (["--key", "alice"], [0, 2]),
            (["--key", "alice", "--key", "bob"], [0, 1, 2]),
            (["--key", "base64:Ym9i"], [1]),
            (["--header", "trace"], [0, 1]),
            (["--header", "trace=2"], [1]),
            (["--header", "trace=3"], []),
            (["--producer-id", "7"], [0, 1, 2]),
            (["--key", "alice", "--offset", "1:"], [2]),
        ],
    )
    def test_records_must_match_all_filters(
        self, kctl: Kctl, segment: Path, filters: list[str], expected: list[int]
    ) -> None:
        assert offsets(kctl, segment, *filters) == expected

    def test_key_filter_shows_records(self, kctl: Kctl, segment: Path) -> None:
        assert [row["type"] for row in rows(kctl, segment, "--key", "bob")] == ["record"]

    def test_batches_are_filtered_by_their_headers(self, kctl: Kctl, segment: Path) -> None:
        def bases(*filters: str) -> list[int]:
            return [row["base_offset"] for row in rows(kctl, segment, *filters)]

        assert bases("--offset", "1:1") == [0]
        assert bases("--offset", "2:3") == [0, 3]
        assert bases("--time", f"{NOW_MS + 5000}:") == [3]
        assert bases("--time", f":{NOW_MS + 5000}") == [0]
        assert bases("--producer-id", "7") == [0]

    def test_batches_are_filtered_by_their_records_where_needed(
        self, kctl: Kctl, segment: Path
    ) -> None:
        (batch,) = rows(kctl, segment, "--batches", "--key", "bob")

        assert (batch["type"], batch["base_offset"]) == ("batch", 0)
        assert rows(kctl, segment, "--batches", "--key", "carol") == []

    def test_compressed_old_format_is_filtered_by_offset(self, kctl: Kctl) -> None:
        assert offsets(kctl, LOGS / "magic1/old-gzip-0", "--offset", "38:41") == [38, 39, 40, 41]

    @pytest.mark.parametrize(
        ("option", "value"),
        [("--offset", "a:b"), ("--time", "yesterday"), ("--time", "12:00"), ("--key", "base64:?")],
    )
    def test_invalid_filter_is_a_usage_error(
        self, kctl: Kctl, segment: Path, option: str, value: str
    ) -> None:
        result = kctl("dump-log", str(segment), option, value)

        assert (result.output, result.exit_code) == ("", 2)
        assert value in result.stderr


class TestStats:
    def test_statistics_of_a_segment(self, kctl: Kctl, segment: Path) -> None:
        (stats,) = rows(kctl, segment, "--stats")

        assert (stats["segments"], stats["batches"], stats["records"]) == (1, 2, 4)
        assert (stats["first_offset"], stats["last_offset"], stats["gaps"]) == (0, 3, 0)
        assert stats["codecs"]["lz4"]["records"] == 3
        assert (stats["distinct_keys"], stats["null_keys"], stats["tombstones"]) == (2, 1, 1)
        assert stats["records_with_headers"] == 2
        assert stats["producers"] == 1
        assert stats["record_bytes"] == {"min": 2, "mean": 6.8, "max": 12}
        assert stats["histogram"] == [
            {"from_bytes": 2, "to_bytes": 3, "records": 1},
            {"from_bytes": 4, "to_bytes": 7, "records": 1},
            {"from_bytes": 8, "to_bytes": 15, "records": 2},
        ]

    def test_regression_files_marked_for_deletion_are_not_counted(
        self, kctl: Kctl, segment: Path
    ) -> None:
        for mark in (".deleted", ".cleaned", ".swap"):
            shutil.copy(segment, segment.with_name(f"{segment.name}{mark}"))

        (stats,) = rows(kctl, segment.parent, "--stats")

        assert (stats["segments"], stats["records"]) == (1, 4)
        named = segment.with_name(f"{segment.name}.deleted")
        assert rows(kctl, named, "--stats")[0]["records"] == 4

    def test_gaps_are_those_left_by_compaction(self, kctl: Kctl) -> None:
        (stats,) = rows(kctl, MAGIC_2 / "compacted-0", "--stats")

        assert stats["missing_offsets"] == stats["last_offset"] + 1 - stats["records"]
        assert stats["gaps"] > 0

    def test_filtered_batches_are_not_gaps(self, kctl: Kctl) -> None:
        (stats,) = rows(kctl, MAGIC_2 / "rolled-0", "--stats", "--offset", "700:709")

        assert (stats["records"], stats["gaps"]) == (10, 0)

    def test_table_has_a_summary_and_bars(self, kctl: Kctl) -> None:
        text = kctl("dump-log", str(MAGIC_2 / "codec-lz4-0"), "--stats").output

        assert "Codecs:       lz4 3 batches at 1.36 to 1\n" in text
        assert "Keys:         240 distinct, 60 null\n" in text
        assert f"  32-63  {'█' * 40}  154\n" in text

    def test_directory_of_partitions_is_counted_by_partition(self, kctl: Kctl) -> None:
        found = {Path(row["directory"]).name: row for row in rows(kctl, MAGIC_2, "--stats")}

        assert found["txn-0"]["control_batches"] == 6
        assert found["empty-0"]["records"] == 0
        assert found["trimmed-0"]["first_offset"] < 321

    def test_key_and_header_are_refused(self, kctl: Kctl, segment: Path) -> None:
        result = kctl("dump-log", str(segment), "--stats", "--key", "alice")

        assert result.exit_code == 2
        assert "whole batches" in result.stderr


class TestBadInput:
    """One-line error, status 1, and the valid file is still shown."""

    @pytest.fixture
    def bad(self, tmp_path: Path) -> Path:
        return tmp_path / "bad"

    def check(self, kctl: Kctl, bad: Path, good: Path, expected: str) -> None:
        for output in ([], ["-o", "json"], ["--stats"], ["--format", "kafka"]):
            result = kctl("dump-log", str(bad), str(good), "--kind", "log", *output)

            assert len(result.stderr.splitlines()) == 1
            assert expected in result.stderr
            assert str(good) in result.output or str(good.parent) in result.output
            assert result.exit_code == 1

    def test_missing_file(self, kctl: Kctl, bad: Path, segment: Path) -> None:
        self.check(kctl, bad, segment, f"{bad}: no such file")

    def test_directory_without_segments(self, kctl: Kctl, bad: Path, segment: Path) -> None:
        bad.mkdir()
        (bad / "notes.txt").touch()
        self.check(kctl, bad, segment, f"{bad}: no log files in this directory")

    def test_file_of_another_kind(self, kctl: Kctl, bad: Path, segment: Path) -> None:
        bad.write_text("hello")
        self.check(kctl, bad, segment, f"{bad}: not a file of a Kafka log")

    def test_file_name_that_is_not_an_offset(self, kctl: Kctl, bad: Path, segment: Path) -> None:
        path = bad.with_suffix(".log")
        path.touch()
        self.check(kctl, path, segment, "expected a base offset as file name, found 'bad'")

    def test_file_that_is_not_a_segment(self, kctl: Kctl, bad: Path, segment: Path) -> None:
        path = bad / f"{5:020d}.log"
        bad.mkdir()
        path.write_bytes(b"\x00" * 100)
        self.check(kctl, path, segment, f"{path} position 0: expected a batch length")

    def test_pattern_without_a_match(self, kctl: Kctl, bad: Path, segment: Path) -> None:
        self.check(kctl, Path(f"{bad}*.log"), segment, "no file matches")

    def test_unreadable_file(
        self, kctl: Kctl, bad: Path, segment: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bad.mkdir()
        path = bad / NAME
        path.write_bytes(segment.read_bytes())
        really_open = os.open

        def refuse(name: Path, flags: int) -> int:
            if name == path:  # permissions do not stop the root user that tests may run as
                raise PermissionError(13, "Permission denied", str(name))
            return really_open(name, flags)

        monkeypatch.setattr(os, "open", refuse)
        self.check(kctl, path, segment, f"{path}: permission denied")

    def test_empty_file_given_by_name(self, kctl: Kctl, tmp_path: Path, segment: Path) -> None:
        empty = tmp_path / NAME
        empty.touch()

        result = kctl("dump-log", str(empty), str(segment))

        assert result.stderr == f"error: {empty}: empty\n"
        assert str(segment) in result.output
        assert result.exit_code == 1

    def test_empty_active_segment_in_a_directory_is_not_an_error(self, kctl: Kctl) -> None:
        assert rows(kctl, MAGIC_2 / "empty-0", "--batches") == []

    def test_incomplete_batch_is_reported_after_the_batches_before_it(self, kctl: Kctl) -> None:
        torn = LOGS / "corrupt/torn-0/00000000000000001310.log"

        result = kctl("dump-log", str(torn))

        assert result.output.count("none") == 18
        assert result.stderr == (
            f"error: {torn} position 9252: incomplete batch in the last 501 bytes\n"
        )
        assert result.exit_code == 1

    @pytest.mark.parametrize("options", [["--records"], ["--format", "kafka", "--print-data-log"]])
    def test_unreadable_batch_is_reported_and_the_next_one_shown(
        self, kctl: Kctl, segment: Path, options: list[str]
    ) -> None:
        data = bytearray(segment.read_bytes())
        data[65] ^= 0xFF  # in the head of the lz4 frame
        segment.write_bytes(data)

        result = kctl("dump-log", str(segment), *options)

        assert result.stderr.startswith(f"error: {segment} position 0: last offset 2: lz4: ")
        assert len(result.stderr.splitlines()) == 1
        assert "     3   2023" in result.output or "| offset: 3" in result.output
        assert result.exit_code == 1

    def test_errors_are_json_if_results_are(self, kctl: Kctl, bad: Path) -> None:
        result = kctl("dump-log", str(bad), "-o", "json")

        assert json.loads(result.stderr)["error"] == f"{bad}: no such file"
        assert result.json == []

    def test_missing_argument_is_a_usage_error(self, kctl: Kctl) -> None:
        result = kctl("dump-log", "--records")

        assert result.exit_code == 2
        assert "no file specified" in result.stderr


class TestVerbs:
    def test_show_is_the_default_verb_with_shared_options_anywhere(
        self, kctl: Kctl, segment: Path
    ) -> None:
        expected = rows(kctl, segment)

        assert kctl("dump-log", "show", str(segment), "-o", "json").json == expected
        assert kctl("dump-log", "-o", "json", str(segment)).json == expected
        assert kctl("dump-log", "-o", "json", "show", str(segment)).json == expected
        assert kctl("dump-log", "--output=json", "-v", "show", str(segment)).json == expected

    def test_option_value_is_not_taken_for_a_verb(self, kctl: Kctl, segment: Path) -> None:
        assert rows(kctl, "--key", "check", segment) == []

    def test_help_is_shown_without_arguments(self, kctl: Kctl) -> None:
        assert kctl("dump-log").output.startswith("Usage: kctl dump-log")


@pytest.mark.parametrize("options", [(), ("--records", "-o", "wide"), ("--records", "-o", "csv")])
def test_bad_crc_is_shown_reported_and_status_3(kctl: Kctl, options: tuple[str, ...]) -> None:
    result = kctl("dump-log", str(LOGS / "corrupt/flipped-0"), "--kind", "log", *options)
    assert result.exit_code == 3, result.stderr
    assert "position 7744: bad crc, offsets 500 to" in result.stderr
    assert "bad-crc" in result.output


def test_values_are_not_cut_in_a_pipe(kctl: Kctl, tmp_path: Path) -> None:
    path = tmp_path / NAME
    value = b"x" * 500 + b" the end"
    path.write_bytes(build_batch([(0, NOW_MS, b"k" * 100, value, ())], BatchSettings()))
    for options in ((), ("-o", "wide")):
        result = kctl("dump-log", str(path), "--records", *options)
        assert value.decode() in result.output
        assert "k" * 100 in result.output
