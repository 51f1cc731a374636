"""The commands of docs/guide, run in order; they print what the pages show."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from kctl.docs.tree import walk_commands
from tests.docs.guide_runner import PageSession, needs, run_page
from tests.support.broker import running_broker
from tests.support.cluster import running_cluster
from tests.support.kctl import run_kctl
from tests.support.zookeeper import ZooKeeper

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PageSession]:
    """What the page asks for in its first lines."""
    wanted, page = needs(request.getfixturevalue("page")), PageSession(tmp_path, "")
    with ExitStack() as stack:
        stack.callback(page.close)
        if wanted in ("zookeeper", "cluster"):
            server: ZooKeeper = request.getfixturevalue("zookeeper_server")
            page.zookeeper = server.fresh_chroot()
        if wanted == "broker":
            broker = running_broker(tmp_path, group_initial_rebalance_delay_ms=0)
            page.servers = stack.enter_context(broker).bootstrap_servers
        elif wanted == "cluster":
            (tmp_path / "cluster").mkdir()
            cluster = stack.enter_context(running_cluster(tmp_path / "cluster", page.zookeeper))
            page.servers = cluster.bootstrap_servers
        elif wanted == "seeded broker":
            page.run("kctl dev up --seed-data")
        yield page


def marked(page: Path) -> ParameterSet:
    """The page; those that need a ZooKeeper run where it is started once."""
    marks = [pytest.mark.zk] if needs(page) in ("zookeeper", "cluster") else []
    return pytest.param(page, marks=marks, id=page.stem)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_commands_of_the_page_print_what_it_shows(
    page: Path, session: PageSession, request: pytest.FixtureRequest
) -> None:
    run_page(page, session, rewrite=request.config.getoption("--rewrite"))


def test_page_whose_output_differs_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ kctl --version\nkctl 0.0.0-none\n```\n")
    with pytest.raises(AssertionError, match="--- now"):
        run_page(page, PageSession(tmp_path, ""), rewrite=False)
    assert run_kctl("--version").exit_code == 0


@pytest.mark.zk
def test_thirty_seconds_of_the_readme_work(tmp_path: Path, zookeeper: str) -> None:
    readme = (GUIDE.parents[1] / "README.md").read_text()
    section = readme.partition("## Thirty seconds")[2].partition("## ")[0]
    lines = [line.partition("#")[0] for line in section.splitlines() if line.startswith("$ kctl")]
    assert len(lines) == 4
    with running_cluster(tmp_path, zookeeper) as cluster:
        env = {"KCTL_BOOTSTRAP_SERVERS": cluster.bootstrap_servers}
        create = ("topics", "create", "orders", "-p", "6", "--replication-factor", "2")
        assert run_kctl(*create, env=env).exit_code == 0
        for line in lines:
            result = run_kctl(*line.split()[2:], env=env)
            assert result.exit_code == 0, f"{line}\n{result.output}{result.stderr}"


INLINE = re.compile(r"`(kctl [^`]+)`")
ANYWHERE = [*PAGES, *(GUIDE.parent / "contributing").glob("*.md"), GUIDE.parent / "index.md"]


@pytest.mark.parametrize("page", ANYWHERE, ids=lambda page: page.stem)
def test_commands_and_options_in_the_text_exist(page: Path) -> None:
    known = {found.path: found for found in walk_commands()}
    for text in INLINE.findall(page.read_text()):
        words = text.split()
        path = next(
            (tuple(words[:length]) for length in (3, 2, 1) if tuple(words[:length]) in known),
            (),
        )
        assert len(path) > 1 or words[1].startswith("-"), text
        rest = words[len(path) :]
        assert not (known[path].subcommands and rest and rest[0].islower()), text
        options = {name for parameter in known[path].parameters for name in parameter.names}
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert used <= options | {"--help"}, text
