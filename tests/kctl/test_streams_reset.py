"""`kctl streams reset` on our broker, and beside kafka-streams-application-reset."""

import pytest

from kctl.plans.streams import internal_topics
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl
from tests.support.kraft_kafka import KraftKafka
from tests.support.real_kafka import RealKafka

RESETTER = "org.apache.kafka.tools.StreamsResetter"
INTERNAL = [
    "app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog",
    "app-x-repartition",
    "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic",
    "app-y-subscription-response-topic",
]
FOREIGN = ["app-orders", "app", "other-x-repartition", "application-x-changelog", "lines"]


def test_internal_topics_are_those_with_the_names_that_streams_gives() -> None:
    assert internal_topics([*INTERNAL, *FOREIGN], "app") == sorted(INTERNAL)


def _prepare(kctl: Kctl, servers: str, app: str) -> None:
    """Input, intermediate and internal topics; the application has read all of its input."""
    names = [f"{app}in", f"{app}mid", f"{app}-a-changelog", f"{app}-b-repartition", f"{app}-mine"]
    assert kctl("-b", servers, "topics", "create", *names, "-p", "2").exit_code == 0
    lines = "".join(f"{number}\n" for number in range(5))
    for topic in names[:2]:
        for partition in ("0", "1"):
            words = ("produce", topic, "-p", partition)
            assert kctl("-b", servers, *words, stdin=lines).exit_code == 0
    line = f"groups reset-offsets {app} --topic {app}in --to-latest --yes"
    assert kctl("-b", servers, *line.split()).exit_code == 0


def _check_reset(kctl: Kctl, servers: str, app: str) -> None:
    _prepare(kctl, servers, app)
    words = ["-b", servers, "streams", "reset", app, "--input-topics", f"{app}in"]
    words += ["--intermediate-topics", f"{app}mid"]
    before = _committed(kctl, servers, app)
    preview = kctl(*words, "--dry-run", "-o", "json")
    assert preview.exit_code == 0, preview.stderr
    assert _committed(kctl, servers, app) == before
    done = kctl(*words, "--yes", "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert done.json == preview.json
    deleted = [row["topic"] for row in done.json if row["action"] == "delete"]
    assert deleted == [f"{app}-a-changelog", f"{app}-b-repartition"]
    after = _committed(kctl, servers, app)
    assert {offset for (topic, _), offset in after.items() if topic == f"{app}in"} == {0}
    assert sum(offset for (topic, _), offset in after.items() if topic == f"{app}mid") == 10
    topics = kctl("-b", servers, "topics", "list", "-o", "name").output.split()
    assert [name for name in topics if name.startswith(f"{app}-")] == [f"{app}-mine"]


def _committed(kctl: Kctl, servers: str, app: str) -> dict[tuple[str, int], int]:
    rows = kctl("-b", servers, "groups", "describe", app, "-o", "json").json
    return {(row["topic"], row["partition"]): row["current_offset"] for row in rows}


def test_reset_on_our_broker_rewinds_input_and_deletes_internal_topics(
    kctl: Kctl, shared_broker: RunningBroker
) -> None:
    _check_reset(kctl, shared_broker.bootstrap_servers, "ours")


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_reset_on_kafka_rewinds_input_and_deletes_internal_topics(
    kctl: Kctl, real_kafka: RealKafka
) -> None:
    _check_reset(kctl, real_kafka.bootstrap_servers, "theirs")


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_reset_on_kafka_4_rewinds_input_and_deletes_internal_topics(
    kctl: Kctl, kraft_kafka: KraftKafka
) -> None:
    _check_reset(kctl, kraft_kafka.bootstrap_servers, "newest")


@pytest.mark.kafka
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "scenario",
    ["", "--to-latest", "--to-offset 3", "--to-offset 9", "--shift-by -2", "--shift-by -7"],
)
def test_dry_run_prints_what_the_tool_prints(
    kctl: Kctl, real_kafka: RealKafka, scenario: str
) -> None:
    servers = real_kafka.bootstrap_servers
    app = f"dry{abs(hash(scenario))}"
    _prepare(kctl, servers, app)
    words = ["--input-topics", f"{app}in", "--intermediate-topics", f"{app}mid", "--dry-run"]
    words += scenario.split()
    args = ("--bootstrap-server", servers, "--application-id", app, *words)
    theirs = real_kafka.tool(RESETTER, *args)
    ours = kctl("-b", servers, "streams", "reset", app, *words, "--format", "kafka")
    assert ours.output.splitlines()[:-2] == theirs.stdout.splitlines()[:-2]
    assert ours.output.splitlines()[-1] == theirs.stdout.splitlines()[-1]
    assert _listed(ours.output) == _listed(theirs.stdout)


def _listed(text: str) -> list[str]:
    """The topics to delete; their order in the tool is that of a Java set."""
    head, _, names = text.splitlines()[-2].partition("[")
    return [head, *sorted(names.removesuffix("]").split(", "))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "no application specified"),
        ("bad --input-topics nope", "no such topic: 'nope'"),
        ("bad --internal-topics badtopic", "not internal topics of bad: badtopic"),
        ("bad --input-topics badtopic --to-latest --to-offset 1", "at most one reset option"),
        ("bad --input-topics badtopic --to-datetime yesterday", "yesterday"),
        ("bad --input-topics badtopic --shift-by 1", "no current committed offset"),
    ],
)
def test_bad_reset_changes_nothing(
    kctl: Kctl, shared_broker: RunningBroker, arguments: str, message: str
) -> None:
    servers = shared_broker.bootstrap_servers
    kctl("-b", servers, "topics", "create", "badtopic", "--if-not-exists")
    result = kctl("-b", servers, "streams", "reset", *arguments.split(), "--yes")
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert "internal error" not in result.stderr
    assert "badtopic" in kctl("-b", servers, "topics", "list").output
