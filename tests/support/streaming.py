"""What tests of produce, consume, groups and perf share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import KctlResult, run_kctl

Run = Callable[..., KctlResult]


@contextmanager
def quick_groups_broker(directory: Path) -> Iterator[RunningBroker]:
    """A broker without initial rebalance delay that keeps records with timestamps of 1970."""
    settings = {"group_initial_rebalance_delay_ms": 0, "log_retention_ms": -1}
    with running_broker(directory, **settings) as running:
        yield running


def kctl_on(broker: RunningBroker) -> Run:
    """kctl with `broker` as its cluster."""
    env = {"KCTL_BOOTSTRAP_SERVERS": broker.bootstrap_servers}

    def run(*args: str, stdin: str | None = None) -> KctlResult:
        return run_kctl(*args, stdin=stdin, env=env)

    return run
