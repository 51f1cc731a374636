"""What is printed before a reassignment is confirmed."""

import pytest

from broker.model import TopicPartition
from kctl.cli.options import Session
from kctl.commands.reassign.preview import move_plan
from kctl.model.assignments import Layout
from kctl.operations.reassignment.proposals import Proposal

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))


def test_partitions_without_a_live_replica_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    layout = Layout({1: None, 2: None}, {A0: (3,), A1: (3, 1), A2: (1,)})
    changes = {A0: (1,), A1: (2, 1), A2: (2,)}
    move_plan(Session(), Proposal(layout, changes, frozenset({1, 2})), ())
    warning = "1 partition without a live replica cannot move until broker 3 is back: a-0\n"
    assert warning in capsys.readouterr().err


def test_plan_with_live_replicas_has_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    layout = Layout({1: None, 2: None}, {A1: (3, 1)})
    move_plan(Session(), Proposal(layout, {A1: (2, 1)}, frozenset({1, 2})), ())
    assert "without a live replica" not in capsys.readouterr().err
