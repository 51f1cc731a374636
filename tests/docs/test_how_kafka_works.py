"""docs/how-kafka-works: every command runs, and prints what the page shows.

The pages share one cluster, started and stopped by the commands of the index. `--rewrite` puts what
the commands print now into the pages.
"""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.dev.brokers import dev_brokers, stop_all
from kctl.dev.zookeeper import dev_zookeeper
from tests.docs.console_page import read_blocks, rewrite
from tests.docs.console_session import Session

DIRECTORY = Path(__file__).parents[2] / "docs" / "how-kafka-works"
INDEX = DIRECTORY / "index.md"
PAGES = sorted(path.stem for path in DIRECTORY.glob("*.md") if path != INDEX)

CHAPTERS = 17
"""The chapters of the course: one page each."""

OWN_CLUSTER = "replication"
"""The page that starts a cluster of its own."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """The cluster of the index; its last block stops it."""
    home = tmp_path_factory.mktemp("home")
    (home / "docs").symlink_to(DIRECTORY.parent)  # programs of docs/examples, as in a checkout
    session = Session(home, is_rewriting=request.config.getoption("--rewrite"))
    blocks = read_blocks(INDEX)
    try:
        session.run_blocks(blocks[:-1])
        yield session
        session.run_blocks(blocks[-1:])
        if request.config.getoption("--rewrite"):
            rewrite(INDEX, blocks)
    finally:
        state = home / ".local" / "state" / "kctl" / "dev"
        stop_all(dev_brokers(state))
        dev_zookeeper(state).stop()


def start_missing_brokers(session: Session) -> None:
    """A page that fails must not disturb the next one."""
    for broker in dev_brokers(session.home / ".local" / "state" / "kctl" / "dev"):
        if not broker.process.signal(signal.SIGCONT):
            broker.start()


def run_page(name: str, session: Session, request: pytest.FixtureRequest) -> None:
    page = DIRECTORY / f"{name}.md"
    blocks = read_blocks(page)
    session.run_page(blocks)
    if request.config.getoption("--rewrite"):
        rewrite(page, blocks)


@pytest.mark.xdist_group("how-kafka-works")
@pytest.mark.parametrize("name", [name for name in PAGES if name != OWN_CLUSTER])
def test_commands_of_the_page_print_what_it_shows(
    session: Session, request: pytest.FixtureRequest, name: str
) -> None:
    try:
        run_page(name, session, request)
    finally:
        start_missing_brokers(session)


def test_page_with_a_cluster_of_its_own_prints_what_it_shows(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    session = Session(tmp_path, is_rewriting=request.config.getoption("--rewrite"))
    try:
        run_page(OWN_CLUSTER, session, request)
    finally:
        stop_all(dev_brokers(tmp_path / "patient"))
        dev_zookeeper(tmp_path / "patient").stop()


def test_index_lists_every_page_once() -> None:
    rows = re.findall(r"^\| \[[^\]]+\]\(([\w-]+)\.md\) \|", INDEX.read_text(), re.MULTILINE)
    assert sorted(rows) == PAGES
    assert len(PAGES) == CHAPTERS
