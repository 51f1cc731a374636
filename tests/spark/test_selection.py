import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.spark.planning.origin import ExportedEnd, Origin
from kctl.spark.planning.plan import OffsetRange, Piece
from kctl.spark.planning.selection import (
    Selection,
    choose_partitions,
    choose_ranges,
    read_offsets_file,
)

THERE = {
    TopicPartition("audit.eu", 0): (0, 10),
    TopicPartition("orders", 0): (5, 100),
    TopicPartition("orders", 1): (0, 50),
    TopicPartition("__consumer_offsets", 0): (0, 9),
}
ORDERS_0 = TopicPartition("orders", 0)


class FixedSource:
    """Partitions in which the record at offset n is of time n."""

    def partitions(self) -> list[TopicPartition]:
        return list(THERE)

    def whole_ranges(
        self, partitions: Iterable[TopicPartition], *, is_committed: bool
    ) -> list[OffsetRange]:
        return [OffsetRange(*each, *THERE[each]) for each in partitions]

    def offsets_at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        return {each: min(max(timestamp, THERE[each][0]), THERE[each][1]) for each in partitions}

    def pieces(self, offsets: OffsetRange, task_bytes: int) -> Iterator[Piece]:
        raise AssertionError("choosing reads nothing")

    def origin(self, partitions: Iterable[TopicPartition]) -> Origin:
        return Origin("cluster", {"orders": "id-1"}, {})

    def pin(self, ranges: Iterable[OffsetRange], *, is_committed: bool) -> None:
        pass

    def held_back(self, ranges: Iterable[OffsetRange]) -> dict[TopicPartition, int]:
        return {}

    def epoch_end_offsets(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Epoch 1 ends at offset 60, epoch 2 is the last."""
        return {each: {1: 60, 2: 100}.get(epoch, -1) for each, epoch in epochs.items()}


def chosen(selection: Selection) -> dict[TopicPartition, tuple[int, int]]:
    ranges = choose_ranges(FixedSource(), selection)
    return {each.topic_partition: (each.first_offset, each.end_offset) for each in ranges}


def test_topic_given_by_name_is_selected_completely() -> None:
    assert chosen(Selection(("orders",))) == {ORDERS_0: (5, 100), ("orders", 1): (0, 50)}


def test_pattern_matches_whole_names_and_no_internal_topic() -> None:
    topics = {each.topic for each in choose_partitions(list(THERE), [".*"])}
    assert topics == {"audit.eu", "orders"}
    assert choose_partitions(list(THERE), ["audit.*"]) == [("audit.eu", 0)]
    with pytest.raises(CliError, match="no topic matches order"):
        choose_partitions(list(THERE), ["order"])


def test_internal_topic_is_selected_by_name() -> None:
    assert choose_partitions(list(THERE), ["__consumer_offsets"])


def test_invalid_pattern_is_a_usage_error() -> None:
    with pytest.raises(CliError, match="neither a topic nor a valid pattern"):
        choose_partitions(list(THERE), ["("])


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(("orders",), since_ms=20), (20, 100)),
        (Selection(("orders",), since_ms=500), (100, 100)),
        (Selection(("orders",), last=3), (97, 100)),
        (Selection(("orders",), since_ms=98, last=3), (98, 100)),
        (Selection(("orders",), offsets={ORDERS_0: (7, 9)}), (7, 9)),
        (Selection(("orders",), offsets={ORDERS_0: (7, None)}), (7, 100)),
        (Selection(("orders",), exported={ORDERS_0: ExportedEnd(60)}), (60, 100)),
        (Selection(("orders",), exported={ORDERS_0: ExportedEnd(100)}), (100, 100)),
    ],
)
def test_conditions_limit_the_range(selection: Selection, expected: tuple[int, int]) -> None:
    assert chosen(selection)[ORDERS_0] == expected


@pytest.mark.parametrize("offsets", [(4, 9), (7, 101), (9, 7)])
def test_offsets_out_of_range_are_refused(offsets: tuple[int, int]) -> None:
    with pytest.raises(CliError, match=r"orders-0: offsets .* are out of range") as error:
        chosen(Selection(("orders",), offsets={ORDERS_0: offsets}))
    assert "5 to 100" in error.value.hint


def test_partitions_without_offsets_are_left_out_and_unknown_ones_refused() -> None:
    assert set(chosen(Selection(("orders",), offsets={ORDERS_0: (7, 9)}))) == {ORDERS_0}
    with pytest.raises(CliError, match="names orders-7"):
        chosen(Selection(("orders",), offsets={TopicPartition("orders", 7): (0, 1)}))


def test_regression_empty_list_of_offsets_does_not_mean_everything() -> None:
    assert chosen(Selection(("orders",), offsets={})) == {}


def test_gap_between_exports_is_refused() -> None:
    with pytest.raises(CliError, match="offsets 2 to 4 were deleted before they were exported"):
        chosen(Selection(("orders",), exported={ORDERS_0: ExportedEnd(2)}))


def test_log_that_became_shorter_is_refused() -> None:
    with pytest.raises(CliError, match="exported up to 101, but it ends at 100"):
        chosen(Selection(("orders",), exported={ORDERS_0: ExportedEnd(101)}))


@pytest.mark.parametrize(
    ("exported", "problem"),
    [
        (ExportedEnd(60, "other"), "exported from cluster other, the source is cluster cluster"),
        (ExportedEnd(60, "cluster", "id-0"), "topic orders was recreated: .* id-0, .* now id-1"),
        (ExportedEnd(60, None, None, 7), "leader epoch 7, .* the topic was recreated"),
        (ExportedEnd(61, None, None, 1), "ended at offset 60: the log was truncated"),
    ],
)
def test_regression_log_that_is_not_the_exported_one_is_refused(
    exported: ExportedEnd, problem: str
) -> None:
    with pytest.raises(CliError, match=f"orders-0: .*{problem}"):
        chosen(Selection(("orders",), exported={ORDERS_0: exported}))


@pytest.mark.parametrize("epoch", [None, 2])
def test_log_that_is_the_exported_one_is_continued(epoch: int | None) -> None:
    exported = ExportedEnd(61, "cluster", "id-1", epoch)
    assert chosen(Selection(("orders",), exported={ORDERS_0: exported}))[ORDERS_0] == (61, 100)


def test_offsets_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    entry = {"topic": "orders", "partition": 0, "first_offset": 5}
    path.write_text(json.dumps({"partitions": [entry, {**entry, "partition": 1, "end_offset": 9}]}))
    assert read_offsets_file(path) == {ORDERS_0: (5, None), ("orders", 1): (5, 9)}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"partitions": []}', '{"partitions": [{"topic": "x"}]}']
)
def test_invalid_offsets_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(text)
    with pytest.raises(CliError, match="not a list of offsets"):
        read_offsets_file(path)
