"""Leader epochs and their start offsets (KIP-101, KIP-279)."""

from pathlib import Path

import pytest

from broker.log.leader_epochs import LeaderEpochs
from tests.log.support import UnflushedDisk


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    """Epoch 2 from offset 0, epoch 3 from 10, epoch 7 from 20."""
    made = LeaderEpochs(tmp_path, UnflushedDisk())
    for epoch, offset in ((2, 0), (3, 10), (7, 20)):
        made.assign(epoch, offset)
    return made


def reloaded(epochs: LeaderEpochs) -> tuple[tuple[int, int], ...]:
    fresh = LeaderEpochs(epochs.path.parent, UnflushedDisk())
    fresh.load()
    return fresh.entries


def test_new_epochs_are_in_the_file_when_they_were_flushed(epochs: LeaderEpochs) -> None:
    was_dirty = epochs.is_dirty
    assert (was_dirty, reloaded(epochs)) == (True, ())
    epochs.flush()
    assert not epochs.is_dirty
    assert reloaded(epochs) == epochs.entries == ((2, 0), (3, 10), (7, 20))


def test_current_epoch_begins_only_once(epochs: LeaderEpochs) -> None:
    epochs.assign(7, 25)
    assert epochs.entries[-1] == (7, 20)


def test_entries_of_another_history_are_dropped(epochs: LeaderEpochs) -> None:
    epochs.assign(5, 15)
    assert list(epochs.entries) == [(2, 0), (3, 10), (5, 15)]
    epochs.assign(6, 10)
    assert list(epochs.entries) == [(2, 0), (6, 10)]


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (7, (7, 99)),  # the current epoch
        (2, (2, 10)),
        (3, (3, 20)),
        (5, (3, 20)),  # no batch has it: the epoch before
        (1, (1, 0)),  # older than all: earlier records are deleted
        (8, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_end_offset_of_an_epoch(epoch: int, answer: tuple[int, int], epochs: LeaderEpochs) -> None:
    assert epochs.end_offset_for(epoch, 99) == answer


@pytest.mark.parametrize(("offset", "epoch"), [(0, 2), (9, 2), (10, 3), (99, 7), (-1, None)])
def test_epoch_of_an_offset(offset: int, epoch: int | None, epochs: LeaderEpochs) -> None:
    assert epochs.epoch_for_offset(offset) == epoch


@pytest.mark.parametrize(
    ("offset", "left"), [(20, ((2, 0), (3, 10))), (21, ((2, 0), (3, 10), (7, 20))), (0, ())]
)
def test_truncation_from_the_end(
    offset: int, left: tuple[tuple[int, int], ...], epochs: LeaderEpochs
) -> None:
    epochs.truncate_from_end(offset)
    assert epochs.entries == left
    epochs.flush()
    assert reloaded(epochs) == left


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (0, ((2, 0), (3, 10), (7, 20))),
        (5, ((2, 5), (3, 10), (7, 20))),
        (10, ((3, 10), (7, 20))),
        (50, ((7, 50),)),
    ],
)
def test_truncation_from_the_start_moves_the_first_epoch(
    offset: int, left: tuple[tuple[int, int], ...], epochs: LeaderEpochs
) -> None:
    epochs.truncate_from_start(offset)
    assert epochs.entries == left
    epochs.flush()
    assert reloaded(epochs) == left


def test_cleared_epochs_are_removed_from_the_file(epochs: LeaderEpochs) -> None:
    epochs.clear()
    assert epochs.latest_epoch is None
    assert epochs.earliest is None
    assert reloaded(epochs) == ()
