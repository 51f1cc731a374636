"""`kctl metadata copy`, with the znodes of a real cluster of three, on real stores."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from broker.metadata.embedded import METADATA_FILE, EmbeddedStore
from broker.metadata.recursive import BranchNode, create_recursive, read_branch
from broker.metadata.store import Create, MetadataStore, Stat
from broker.metadata.zookeeper import ZooKeeperSettings, ZooKeeperStore
from kctl.admin.metadata_copy import plan_copy
from tests.support.kctl import Kctl
from tests.support.processes import free_port

GOLDEN = Path(__file__).parents[1] / "golden" / "zookeeper" / "cluster.jsonl"
SAMPLES = [
    json.loads(line) for line in GOLDEN.read_text().splitlines() if '"path": "/"' not in line
]
CLUSTER_ID = "_sKXAzyITPuweRptJ5jjZw"
NOTES = ("/config/changes/", "/kafka-acl-changes/")
COPIED = {
    z["path"]: z["data"].encode() or None
    for z in SAMPLES
    if not z["ephemeral"] and not z["path"].startswith(NOTES)
}
SEQUENCE_IDS_GIVEN = 3


async def fill(store: MetadataStore, *, ephemerals: bool) -> None:
    """Make the store that of the sampled cluster; generated broker ids were asked for."""
    await store.multi(
        [
            Create(z["path"], z["data"].encode() or None, z["ephemeral"])
            for z in SAMPLES
            if ephemerals or not z["ephemeral"]
        ]
    )
    for _ in range(SEQUENCE_IDS_GIVEN):
        await store.set("/brokers/seqid", None)


async def contents(store: MetadataStore) -> dict[str, bytes | None]:
    nodes = await read_branch(store, "/")
    return {node.path: node.data for node in nodes if node.path != "/"}


def fill_directory(directory: Path) -> None:
    async def run() -> None:
        store = EmbeddedStore.open(directory / METADATA_FILE)
        await fill(store, ephemerals=False)
        await store.close()

    asyncio.run(run())


def read_directory(directory: Path) -> tuple[dict[str, bytes | None], int]:
    """Everything there, and the version of /brokers/seqid."""

    async def run() -> tuple[dict[str, bytes | None], int]:
        store = EmbeddedStore.open(directory / METADATA_FILE)
        found = await contents(store), (await store.get("/brokers/seqid")).stat.version
        await store.close()
        return found

    return asyncio.run(run())


@pytest.fixture
def broker_dir(tmp_path: Path) -> Path:
    """The directory of a broker that is stopped."""
    directory = tmp_path / "broker"
    directory.mkdir()
    fill_directory(directory)
    return directory


@pytest.fixture
def empty_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "empty"
    directory.mkdir()
    return directory


class TestBetweenDirectories:
    def test_all_but_notes_arrives_and_versions_that_count_go_on(
        self, kctl: Kctl, broker_dir: Path, empty_dir: Path
    ) -> None:
        result = kctl("metadata", "copy", str(broker_dir), str(empty_dir))
        assert (result.exit_code, result.stderr) == (
            0,
            f"cluster {CLUSTER_ID}: {len(COPIED)} znodes copied\n",
        )
        assert read_directory(empty_dir) == (COPIED, SEQUENCE_IDS_GIVEN)

    def test_table_counts_known_kinds_of_nodes(
        self, kctl: Kctl, broker_dir: Path, empty_dir: Path
    ) -> None:
        rows = kctl("metadata", "copy", str(broker_dir), str(empty_dir), "-o", "json").json
        copied = {row["what"]: row["copied"] for row in rows}
        assert copied["topics"] == 4
        assert copied["partitions"] == 17
        assert copied["topic configs"] == 4
        assert copied["cluster id"] == copied["user configs"] == copied["client configs"] == 1
        assert sum(copied.values()) == len(COPIED)
        assert {row["what"]: row["left_out"] for row in rows if row["left_out"]} == {
            "change notes": 17
        }

    def test_dry_run_shows_the_same_and_changes_nothing(
        self, kctl: Kctl, broker_dir: Path, empty_dir: Path
    ) -> None:
        dry = kctl("metadata", "copy", str(broker_dir), str(empty_dir), "--dry-run")
        assert "nothing was changed" in dry.stderr
        assert list(empty_dir.iterdir()) == []
        assert kctl("metadata", "copy", str(broker_dir), str(empty_dir)).output == dry.output

    def test_target_with_metadata_is_refused_and_left_alone(
        self, kctl: Kctl, broker_dir: Path, empty_dir: Path
    ) -> None:
        async def start_something_else() -> None:
            store = EmbeddedStore.open(empty_dir / METADATA_FILE)
            await create_recursive(store, "/brokers/seqid")
            await store.close()

        asyncio.run(start_something_else())
        result = kctl("metadata", "copy", str(broker_dir), str(empty_dir))
        assert result.exit_code == 1
        assert "already contains metadata: /brokers" in result.stderr
        assert result.output == ""
        assert read_directory(empty_dir)[0] == {"/brokers": None, "/brokers/seqid": None}

    def test_store_that_a_broker_has_open_is_refused(
        self, kctl: Kctl, broker_dir: Path, empty_dir: Path
    ) -> None:
        store = EmbeddedStore.open(broker_dir / METADATA_FILE)
        result = kctl("metadata", "copy", str(broker_dir), str(empty_dir))
        asyncio.run(store.close())
        assert result.exit_code == 1
        assert f"{broker_dir} is in use by a running broker" in result.stderr
        assert list(empty_dir.iterdir()) == []

    def test_target_with_partitions_of_another_cluster_is_refused(
        self, kctl: Kctl, broker_dir: Path, empty_dir: Path
    ) -> None:
        meta = empty_dir / "meta.properties"
        meta.write_text("version=0\nbroker.id=1\ncluster.id=another\n")
        result = kctl("metadata", "copy", str(broker_dir), str(empty_dir))
        assert result.exit_code == 1
        assert f"another cluster: another, not {CLUSTER_ID}" in result.stderr
        assert list(empty_dir.iterdir()) == [meta]
        meta.write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER_ID}\n")
        assert kctl("metadata", "copy", str(broker_dir), str(empty_dir)).exit_code == 0

    def test_invalid_meta_properties_are_named(
        self, kctl: Kctl, broker_dir: Path, empty_dir: Path
    ) -> None:
        (empty_dir / "meta.properties").write_text("version=?\n")
        result = kctl("metadata", "copy", str(broker_dir), str(empty_dir))
        assert result.exit_code == 1
        assert "meta.properties" in result.stderr

    def test_source_without_metadata_hints_at_its_location(
        self, kctl: Kctl, empty_dir: Path
    ) -> None:
        result = kctl("metadata", "copy", str(empty_dir), str(empty_dir))
        assert result.exit_code == 1
        assert f"no metadata found at {empty_dir}" in result.stderr
        assert METADATA_FILE in result.stderr
        assert list(empty_dir.iterdir()) == []

    def test_source_with_an_invalid_cluster_id_is_named(
        self, kctl: Kctl, broker_dir: Path, empty_dir: Path
    ) -> None:
        async def damage() -> None:
            store = EmbeddedStore.open(broker_dir / METADATA_FILE)
            await store.set("/cluster/id", b"{}")
            await store.close()

        asyncio.run(damage())
        result = kctl("metadata", "copy", str(broker_dir), str(empty_dir))
        assert result.exit_code == 1
        assert "/cluster/id" in result.stderr
        assert "internal error" not in result.stderr

    @pytest.mark.parametrize("missing", ["FROM", "TO"])
    def test_missing_directory_is_named(
        self, kctl: Kctl, broker_dir: Path, tmp_path: Path, missing: str
    ) -> None:
        nowhere = str(tmp_path / "nowhere")
        places = [nowhere, str(broker_dir)] if missing == "FROM" else [str(broker_dir), nowhere]
        result = kctl("metadata", "copy", *places)
        assert result.exit_code == 1
        assert f"no such directory: {nowhere}" in result.stderr

    def test_place_of_an_unknown_kind_is_a_usage_error(self, kctl: Kctl, broker_dir: Path) -> None:
        result = kctl("metadata", "copy", str(broker_dir), "http://localhost:2181")
        assert result.exit_code == 2
        assert "zookeeper://HOST:PORT/CHROOT" in result.stderr


@pytest.mark.zk
class TestWithZooKeeper:
    def test_there_and_back_again_is_the_same(
        self, kctl: Kctl, zookeeper: str, broker_dir: Path, empty_dir: Path
    ) -> None:
        grown_up = f"zookeeper://{zookeeper}/prod/kafka"
        assert kctl("metadata", "copy", str(broker_dir), grown_up).exit_code == 0
        assert kctl("metadata", "copy", grown_up, str(empty_dir)).exit_code == 0
        assert read_directory(empty_dir) == (COPIED, SEQUENCE_IDS_GIVEN)
        again = kctl("metadata", "copy", str(broker_dir), grown_up)
        assert again.exit_code == 1
        assert "already contains metadata" in again.stderr

    def test_dry_run_creates_no_chroot(self, kctl: Kctl, zookeeper: str, broker_dir: Path) -> None:
        target = f"zookeeper://{zookeeper}/new"
        assert kctl("metadata", "copy", str(broker_dir), target, "--dry-run").exit_code == 0

        async def names() -> list[str]:
            store = await ZooKeeperStore.open(ZooKeeperSettings(zookeeper))
            found = await store.children("/")
            await store.close()
            return found

        assert asyncio.run(names()) == []

    async def copy_while_running(
        self, kctl: Kctl, zookeeper: str, target: Path, *options: str
    ) -> tuple[int, str]:
        """Copy while the sampled brokers are registered, beside something that is not Kafka's."""
        store = await ZooKeeperStore.open(ZooKeeperSettings(zookeeper))
        try:
            await fill(store, ephemerals=True)
            await create_recursive(store, "/hbase/master", b"x")
            arguments = ("metadata", "copy", f"zookeeper://{zookeeper}", str(target), *options)
            result = await asyncio.to_thread(kctl, *arguments)
        finally:
            await store.close()
        return result.exit_code, result.stderr

    def test_running_brokers_are_named_and_nothing_is_copied(
        self, kctl: Kctl, zookeeper: str, empty_dir: Path
    ) -> None:
        status, stderr = asyncio.run(self.copy_while_running(kctl, zookeeper, empty_dir))
        assert status == 1
        assert "brokers are running" in stderr
        assert ": 1, 2, 3" in stderr
        assert list(empty_dir.iterdir()) == []

    def test_live_copy_skips_registrations_and_foreign_nodes(
        self, kctl: Kctl, zookeeper: str, empty_dir: Path
    ) -> None:
        status, _ = asyncio.run(self.copy_while_running(kctl, zookeeper, empty_dir, "--live"))
        assert status == 0
        assert read_directory(empty_dir) == (COPIED, SEQUENCE_IDS_GIVEN)

    def test_missing_chroot_cannot_be_copied(
        self, kctl: Kctl, zookeeper: str, empty_dir: Path
    ) -> None:
        result = kctl("metadata", "copy", f"zookeeper://{zookeeper}/typo", str(empty_dir))
        assert result.exit_code == 1
        assert "no metadata found at" in result.stderr
        assert "chroot" in result.stderr


def test_unreachable_zookeeper_is_one_error_and_status_4(kctl: Kctl, broker_dir: Path) -> None:
    place = f"zookeeper://127.0.0.1:{free_port()}/kafka"
    result = kctl("metadata", "copy", str(broker_dir), place, "--timeout", "0.5")
    assert result.exit_code == 4
    assert f"no answer from ZooKeeper at {place}" in result.stderr
    assert len(result.stderr.splitlines()) == 2


def nodes(paths: Iterable[str]) -> list[BranchNode]:
    return [BranchNode(path, None, Stat(1, 1, 1, 0, 0, 0, 0, 0, 0)) for path in paths]


def test_cluster_id_is_written_last() -> None:
    plan = plan_copy(nodes(["/brokers", "/cluster", "/cluster/id", "/config"]), CLUSTER_ID)
    assert [operation.path for operation in plan.operations] == [
        "/brokers",
        "/config",
        "/cluster",
        "/cluster/id",
    ]


def test_controllers_seat_stays_even_if_it_is_not_ephemeral() -> None:
    """A KRaft controller that migrates a cluster makes it persistent."""
    plan = plan_copy(nodes(["/controller", "/controller_epoch"]), CLUSTER_ID)
    assert [operation.path for operation in plan.operations] == ["/controller_epoch"]
    assert plan.left_out == {"controller": 1}
