"""`kctl zk` on the znodes of a real cluster of three."""

import asyncio
import json
import re
import shlex
from pathlib import Path

import pytest

from broker.metadata.embedded import METADATA_FILE, EmbeddedStore
from broker.metadata.store import Create, MetadataStore
from broker.metadata.zookeeper import ZooKeeperSettings, ZooKeeperStore
from kctl.admin.znode_kinds import HIDDEN, UNREADABLE, explain
from kctl.docs.tree import walk_commands
from tests.support.kctl import Kctl
from tests.support.processes import free_port

GOLDEN = Path(__file__).parents[1] / "golden" / "zookeeper" / "cluster.jsonl"
SAMPLES = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
ZNODES = {sample["path"]: sample["data"].encode() or None for sample in SAMPLES}
TOPIC_ID = json.loads(ZNODES["/brokers/topics/orders"] or b"")["topic_id"]


async def fill(store: MetadataStore) -> None:
    await store.multi([Create(path, data) for path, data in ZNODES.items() if path != "/"])
    await store.close()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("znodes")

    async def run() -> None:
        await fill(EmbeddedStore.open(path / METADATA_FILE))

    asyncio.run(run())
    return str(path)


@pytest.mark.parametrize(
    ("path", "kind", "summary"),
    [
        ("/brokers/ids/1", "broker", "CLIENT://127.0.0.1:29201, rack rack-1"),
        ("/brokers/topics/orders", "topic", f"6 partitions, 2-3 replicas each, id {TOPIC_ID}"),
        ("/controller_epoch", "controller epoch", "1"),
        ("/cluster/id", "cluster id", "_sKXAzyITPuweRptJ5jjZw"),
        ("/brokers/topics", "", ""),
        ("/latest_producer_id_block", "producer ids", "1000 to 1999 for broker 2"),
    ],
)
def test_kafkas_znodes_have_short_descriptions(path: str, kind: str, summary: str) -> None:
    found = explain(path, ZNODES[path])
    assert (found.kind, found.summary) == (kind, summary)


def test_every_znode_of_a_cluster_can_be_explained() -> None:
    told = {path: explain(path, data) for path, data in ZNODES.items()}
    assert not [path for path, one in told.items() if one.summary == UNREADABLE]
    unknown = [path for path, one in told.items() if ZNODES[path] and not one.kind]
    assert not [path for path in unknown if not path.startswith("/kafka-acl-changes")]


def test_unreadable_znode_is_reported_without_its_data() -> None:
    found = explain("/brokers/topics/orders", b"{sesame")
    assert (found.kind, found.summary) == ("topic", UNREADABLE)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/config/users/alice", {"version": 1, "config": {"SCRAM-SHA-256": "salt=sesame"}}),
        ("/config/brokers/1", {"version": 1, "config": {"ssl.key.password": "sesame"}}),
        ("/elsewhere", {"hmac": "sesame", "list": [{"password": "sesame"}]}),
    ],
)
def test_secrets_are_hidden_in_summary_and_value(path: str, data: dict[str, object]) -> None:
    found = explain(path, json.dumps(data).encode())
    shown = f"{found.summary} {found.value}"
    assert "sesame" not in shown
    assert HIDDEN in shown


def test_binary_data_is_shown_in_hexadecimal() -> None:
    assert explain("/x", b"\x00\xff").value == "0x00ff"
    assert explain("/x", b"hello").value == "hello"
    assert explain("/x", None).value is None


def test_ls_lists_children(kctl: Kctl, directory: str) -> None:
    found = kctl("zk", "ls", "/brokers/ids", "--directory", directory, "-o", "json").json
    assert [(row["name"], row["kind"]) for row in found] == [
        ("1", "broker"),
        ("2", "broker"),
        ("3", "broker"),
    ]
    assert found[0]["value"]["rack"] == "rack-1"


def test_get_shows_json_and_with_raw_the_exact_data(kctl: Kctl, directory: str) -> None:
    shown = kctl("zk", "get", "/brokers/topics/orders", "--directory", directory)
    assert "KIND:" in shown.output and '"topic_id": ' in shown.output
    raw = kctl("zk", "get", "/brokers/topics/orders", "--directory", directory, "--raw")
    assert raw.output.encode() == (ZNODES["/brokers/topics/orders"] or b"") + b"\n"


def test_tree_draws_the_branch(kctl: Kctl, directory: str) -> None:
    result = kctl("zk", "tree", "/brokers", "--depth", "2", "--directory", directory)
    assert result.output.splitlines()[:6] == [
        "/brokers",
        "├── ids",
        "│   ├── 1  CLIENT://127.0.0.1:29201, rack rack-1",
        "│   ├── 2  CLIENT://127.0.0.1:29202, rack rack-0",
        "│   └── 3  CLIENT://127.0.0.1:29203, rack rack-1",
        "├── seqid",
    ]


def test_whole_tree_has_every_znode(kctl: Kctl, directory: str) -> None:
    found = kctl("zk", "tree", "--directory", directory, "-o", "name").output.splitlines()
    assert set(found) == set(ZNODES)
    drawn = kctl("zk", "tree", "/brokers/topics/orders", "--directory", directory).output
    assert [re.sub(r"(?<=\w)  .*", "", line) for line in drawn.splitlines()] == [
        "/brokers/topics/orders",
        "└── partitions",
        *(f"    {'└' if number == 5 else '├'}── {number}/state" for number in range(6)),
    ]


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["get", "/nowhere"], 1, "no such znode: /nowhere"),
        (["tree", "/nowhere"], 1, "no such znode: /nowhere"),
        (["ls", "/nowhere"], 1, "no such znode: /nowhere"),
        (["get", "/a//b"], 2, "is not a legal path of a node"),
        (["ls", "-z", "h:1"], 2, "cannot be combined"),
    ],
)
def test_znodes_that_cannot_be_shown_are_errors(
    kctl: Kctl, directory: str, args: list[str], status: int, words: str
) -> None:
    result = kctl("zk", *args, "--directory", directory)
    assert result.exit_code == status
    assert words in result.stderr


def test_missing_zookeeper_is_a_usage_error(kctl: Kctl) -> None:
    result = kctl("zk", "ls")
    assert result.exit_code == 2
    assert "no ZooKeeper specified" in result.stderr


def test_invalid_host_name_of_a_zookeeper_is_a_usage_error(kctl: Kctl) -> None:
    result = kctl("zk", "ls", "-z", "a..b:2181")
    assert (result.exit_code, "invalid host name 'a..b'" in result.stderr) == (2, True)


def test_zookeeper_without_an_answer_times_out(kctl: Kctl) -> None:
    result = kctl("zk", "ls", "-z", f"127.0.0.1:{free_port()}", "--timeout", "0.2")
    assert result.exit_code == 4
    assert "no answer from ZooKeeper" in result.stderr


@pytest.mark.zk
def test_context_names_the_zookeeper(kctl: Kctl, zookeeper: str, tmp_path: Path) -> None:
    async def run() -> None:
        await fill(await ZooKeeperStore.open(ZooKeeperSettings(zookeeper), create_chroot=True))

    asyncio.run(run())
    environ = {"KCTL_CONFIG": str(tmp_path / "config.yaml")}
    shared = ["-b", "nowhere:1", "--zookeeper", zookeeper]
    assert kctl("context", "set", "prod", *shared, env=environ).exit_code == 0
    found = kctl("zk", "get", "/controller", "-o", "json", env=environ).json
    assert found["kind"] == "controller"
    tree = kctl("zk", "tree", "-o", "name", env=environ).output.splitlines()
    assert set(tree) == set(ZNODES)


EXAMPLES = [
    example
    for command in walk_commands()
    # `watch` needs a ZooKeeper: tests/cluster/test_events.py runs its examples.
    if command.path[1:2] == ("zk",) and command.path[2:] != ("watch",)
    for example in command.examples
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(kctl: Kctl, directory: str, example: str) -> None:
    """On the directory: that a ZooKeeper does as well is proved above."""
    words = re.sub(r"-z \S+", "--directory /var/lib/kctl", example)
    result = kctl(*shlex.split(words.replace("/var/lib/kctl", directory))[1:])
    assert result.exit_code == 0, result.stderr
