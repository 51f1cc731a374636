"""Clients hardly notice that brokers are restarted one after the other.

The long form runs with `make chaos`. The limit there is the goal; the short form has to pass on
any machine, and would still find an acknowledgement that waits for a timeout.
"""

from pathlib import Path

import pytest

from tests.cluster.rolling import SETTINGS, roll
from tests.support.cluster import running_cluster
from tests.support.zookeeper import ZooKeeper

LIMIT_S = 3.0
SHORT_LIMIT_S = 10.0


@pytest.mark.zk
@pytest.mark.timeout(180)
def test_rolling_restart_delays_no_acknowledgement_for_long(
    tmp_path: Path, zookeeper_server: ZooKeeper
) -> None:
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(tmp_path, chroot, settings=SETTINGS) as cluster:
        assert max(roll(cluster, "rolling", rounds=1)) < SHORT_LIMIT_S


@pytest.mark.chaos
@pytest.mark.zk
@pytest.mark.timeout(1800)
def test_ten_rolling_restarts_delay_no_acknowledgement_by_three_seconds(
    tmp_path: Path, zookeeper_server: ZooKeeper, capsys: pytest.CaptureFixture[str]
) -> None:
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(tmp_path, chroot, settings=SETTINGS) as cluster:
        waits = roll(cluster, "rolling", rounds=10)
    with capsys.disabled():
        print("\nlongest acknowledgement at each restart:", *(f"{s:.2f}" for s in waits))
    assert max(waits) < LIMIT_S
