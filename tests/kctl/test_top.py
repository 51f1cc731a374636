"""`kctl top`: its keys by Textual's pilot, its numbers against other clients, on a real broker."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from textual.pilot import Pilot

from kctl.admin.broker_counters import parse_endpoints
from kctl.cli.options import Session
from kctl.commands import top
from kctl.top.app import Failed, TopApp
from kctl.top.pages import PAGES, View, command_line
from kctl.top.rows_table import RowsTable
from kctl.top.sampler import Source
from tests.admin.conftest import admin_url
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import run_kctl
from tests.support.processes import free_port

pytestmark = pytest.mark.timeout(90)
STEP_S = 0.02


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Topics orders (30 records in 2 partitions) and clicks; `billing` has committed 10."""
    directory = tmp_path_factory.mktemp("top")
    settings = {"group.initial.rebalance.delay.ms": 0, "admin.listeners": "http://127.0.0.1:0"}
    with running_broker(directory, **settings) as broker:
        server: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
        wanted = [NewTopic("orders", 2, 1), NewTopic("clicks", 1, 1)]
        admin = AdminClient(server)
        for future in admin.create_topics(wanted).values():
            future.result(30)
        produce(broker, "orders", 30)
        consumer = Consumer({**server, "group.id": "billing"})
        offsets = [TopicPartition("orders", 0, 4), TopicPartition("orders", 1, 6)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        yield broker


def produce(broker: RunningBroker, topic: str, count: int, size: int = 10) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, b"x" * size, partition=number % 2 if topic == "orders" else 0)
    assert producer.flush(30) == 0


class Screen:
    """What a person sees and does."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def table(self) -> str:
        return self.app.screen_stack[0].query_one(RowsTable).text()

    def part(self, name: str) -> str:
        return str(self.app.screen_stack[0].query_one(f"#{name}").render())

    @property
    def cursor(self) -> dict[str, object]:
        return dict(self.app.screen_stack[0].query_one(RowsTable).cursor_row or {})

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def wait_for(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await self.pilot.pause(STEP_S)


@asynccontextmanager
async def screen_of(
    broker: RunningBroker, view: View = View.BROKERS, size: tuple[int, int] = (120, 30)
) -> AsyncIterator[Screen]:
    session = Session(
        bootstrap_server=broker.bootstrap_servers, timeout=4.0, given={"bootstrap_server"}
    )
    endpoints = parse_endpoints(admin_url(broker))
    app = TopApp(Source(session, "test", 0.2, 30.0, endpoints), view, ["-b", "h:1"])
    async with app.run_test(size=size) as pilot:
        screen = Screen(app, pilot)
        await screen.wait_for(lambda: "connecting" not in screen.part("status"))
        yield screen


def in_screen(
    broker: RunningBroker, steps: Callable[[Screen], Awaitable[None]], **options: Any
) -> None:
    async def run() -> None:
        async with screen_of(broker, **options) as screen:
            await steps(screen)

    asyncio.run(run())


def test_number_keys_show_the_five_views(filled: RunningBroker) -> None:
    async def steps(screen: Screen) -> None:
        assert screen.cursor["address"] == filled.bootstrap_servers
        await screen.press("2")
        assert {"orders", "clicks"} <= set(re.findall(r"\w+", screen.table))
        await screen.press("3")
        assert re.search(r"orders +0 +1001 +1001 +0 +15 +15", screen.table), screen.table
        await screen.press("4")
        assert (screen.cursor["group"], screen.cursor["lag"]) == ("billing", 20)
        await screen.press("5")
        assert screen.part("empty") == "no reassignment is in progress"
        assert "1 broker" in screen.part("summary")

    in_screen(filled, steps)


def test_enter_opens_and_escape_goes_back(filled: RunningBroker) -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("slash", *"orders", "enter", "enter")
        assert screen.part("tabs").endswith("→ orders")
        assert screen.cursor["high_watermark"] == 15
        await screen.press("enter")
        assert screen.part("tabs").endswith("→ orders:0")
        assert (screen.cursor["role"], screen.cursor["log_end_offset"]) == ("leader", 15)
        await screen.press("escape", "u")
        assert screen.part("tabs").endswith("→ orders consumers")
        assert (screen.cursor["group"], screen.cursor["verdict"]) == ("billing", "unread")
        await screen.press("enter")
        assert [row in screen.table for row in ("11", "9")] == [True, True]
        await screen.press("escape", "escape", "escape", "escape", "escape")
        assert "→" not in screen.part("tabs")

    in_screen(filled, steps, view=View.TOPICS)


def test_filter_is_kept_by_enter_and_removed_by_escape(filled: RunningBroker) -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("slash", *"cli")
        assert "clicks" in screen.table
        assert "orders" not in screen.table
        await screen.press("enter")
        assert "filter cli" in screen.part("status")
        await screen.press("escape")
        assert "orders" in screen.table
        await screen.press("slash", *"nothing has this")
        assert "0 of " in screen.part("status")
        await screen.press("escape")
        assert "filter" not in screen.part("status")
        assert "orders" in screen.table

    in_screen(filled, steps, view=View.TOPICS)


def test_arrows_choose_the_order_and_i_inverts_it(filled: RunningBroker) -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("right", "right", "right")  # SIZE, after MSG/S, IN/S and OUT/S
        assert "SIZE↓" in screen.table
        assert screen.cursor
        await screen.press("home")
        assert screen.cursor["topic"] == "orders"
        await screen.press("i")
        assert "SIZE↑" in screen.table
        await screen.press("end")
        assert screen.cursor["topic"] == "orders"

    in_screen(filled, steps, view=View.TOPICS)


def test_cursor_stays_on_its_row_when_the_order_changes(filled: RunningBroker) -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("down")
        before = screen.cursor["topic"]
        await screen.press("i")
        assert screen.cursor["topic"] == before

    in_screen(filled, steps, view=View.TOPICS)


def test_space_freezes_the_screen_and_releases_it(filled: RunningBroker) -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("slash", *"clicks", "enter", "enter", "space")
        before = screen.cursor["high_watermark"]
        assert "FROZEN" in screen.part("status")
        produce(filled, "clicks", 7)
        newest = screen.app._newest
        await screen.wait_for(lambda: screen.app._newest is not newest)
        newest = screen.app._newest
        await screen.wait_for(lambda: screen.app._newest is not newest)
        assert screen.cursor["high_watermark"] == before
        await screen.press("space")
        assert screen.cursor["high_watermark"] == int(str(before)) + 7

    in_screen(filled, steps, view=View.TOPICS)


def test_c_copies_the_command_and_question_mark_shows_the_help(filled: RunningBroker) -> None:
    async def steps(screen: Screen) -> None:
        await screen.press("enter", "c")
        assert screen.app.clipboard == "kctl groups watch billing -b h:1"
        assert screen.app.clipboard in screen.part("status")
        await screen.press("question_mark")
        assert type(screen.app.screen).__name__ == "HelpScreen"
        await screen.press("escape")
        assert type(screen.app.screen).__name__ != "HelpScreen"
        await screen.press("q")

    in_screen(filled, steps, view=View.GROUPS)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_no_line_is_wider_than_the_terminal(filled: RunningBroker, width: int) -> None:
    async def steps(screen: Screen) -> None:
        for key in "12345":
            await screen.press(key)
            lines = [*screen.table.splitlines(), *screen.part("summary").splitlines()]
            assert max(map(len, lines)) <= width, screen.table

    in_screen(filled, steps, size=(width, 24))


def test_rates_come_from_the_metrics_of_the_broker(filled: RunningBroker) -> None:
    async def steps(screen: Screen) -> None:
        await screen.wait_for(lambda: screen.cursor.get("requests"))
        produce(filled, "clicks", 500, size=1000)
        await screen.wait_for(lambda: screen.cursor.get("bytes_in"))
        assert screen.cursor["bytes_out"] is not None
        assert screen.cursor["produce_p99_ms"] is not None

    in_screen(filled, steps)


def test_once_prints_all_views_as_one_json_document(filled: RunningBroker) -> None:
    result = run_kctl("top", "--once", "-o", "json", "-i", "0.2", "-b", filled.bootstrap_servers)
    assert result.exit_code == 0, result.stderr
    found = result.json
    assert found["brokers"][0]["status"] == "ok"
    assert found["brokers"][0]["bytes_out"] is None  # not visible without metrics
    orders = [row for row in found["partitions"] if row["topic"] == "orders"]
    assert [row["high_watermark"] for row in orders] == [15, 15]
    assert [row["log_end_offset"] for row in orders] == [15, 15]
    on_disk = sum(path.stat().st_size for path in filled.log_dir.glob("orders-*/*.log"))
    (topic,) = (row for row in found["topics"] if row["topic"] == "orders")
    assert (topic["size_bytes"], topic["groups"], topic["lag"]) == (on_disk, 1, 20)
    (group,) = (row for row in found["groups"] if row["group"] == "billing")
    assert (group["lag"], group["verdict"], group["state"]) == (20, "unread", "Empty")
    assert (found["reassignments"], found["problems"]) == ([], [])


def test_once_prints_one_view_in_any_format(filled: RunningBroker) -> None:
    once = ("--once", "-i", "0.2", "-b", filled.bootstrap_servers)
    names = run_kctl("top", "topics", *once, "-o", "name").output.split()
    assert {"orders", "clicks"} <= set(names)
    assert "billing" in run_kctl("top", *once).output
    refused = run_kctl("top", *once, "-o", "csv")
    assert (refused.exit_code, "prints one view" in refused.stderr) == (2, True)


@pytest.mark.parametrize("view", list(View))
def test_copied_commands_run(filled: RunningBroker, view: View) -> None:
    words = command_line(PAGES[view], ["-b", filled.bootstrap_servers]).split()[1:]
    assert run_kctl(*words).exit_code == 0
    row = {"topic": "orders", "partition": 0, "group": "billing", "broker": 1001}
    for page in (PAGES[view].open(row), PAGES[view].consumers(row)):
        if page is not None:
            more = ("-n", "1") if "watch" in page.words else ()
            result = run_kctl(*page.words, "-b", filled.bootstrap_servers, *more)
            assert result.exit_code == 0, result.stderr


def test_unreachable_cluster_is_reported_and_tried_again(tmp_path: Path) -> None:
    port = free_port()

    async def run() -> None:
        session = Session(bootstrap_server=f"127.0.0.1:{port}", given={"bootstrap_server"})
        app = TopApp(Source(session, "test", 0.2, 30.0), View.BROKERS, [])
        async with app.run_test() as pilot:
            screen = Screen(app, pilot)
            await screen.wait_for(lambda: "cannot reach" in screen.part("problems"))
            listeners = f"PLAINTEXT://127.0.0.1:{port}"
            with running_broker(tmp_path, listeners=listeners):
                await screen.wait_for(lambda: screen.cursor)
                assert screen.part("problems") == ""

    asyncio.run(run())


def test_sample_that_arrives_after_the_end_is_ignored() -> None:
    async def run() -> None:
        session = Session(bootstrap_server=f"127.0.0.1:{free_port()}", given={"bootstrap_server"})
        app = TopApp(Source(session, "test", 0.2, 30.0), View.BROKERS, [])
        async with app.run_test():
            pass
        app.on_failed(Failed("cannot reach the cluster"))

    asyncio.run(run())


def test_metrics_that_do_not_answer_are_named(filled: RunningBroker) -> None:
    admin = f"127.0.0.1:{free_port()}"
    once = ("--once", "-i", "0.2", "-b", filled.bootstrap_servers, "-o", "json")
    result = run_kctl("top", *once, "--admin", admin)
    assert result.exit_code == 0
    assert f"cannot read http://{admin}/version" in result.json["problems"][0]
    wrong = run_kctl("top", *once, "--admin", "one=h:1")
    assert (wrong.exit_code, "is not a broker id" in wrong.stderr) == (2, True)


def test_without_textual_or_a_terminal_the_error_says_what_to_do(
    filled: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_kctl("top", "-b", filled.bootstrap_servers)
    assert (result.exit_code, "needs a terminal" in result.stderr) == (2, True)
    monkeypatch.setattr(top, "find_spec", lambda _name: None)
    result = run_kctl("top", "-b", filled.bootstrap_servers)
    assert (result.exit_code, "pip install 'kctl[top]'" in result.stderr) == (1, True)
