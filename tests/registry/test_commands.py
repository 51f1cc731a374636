"""`kctl registry`, `consume` and `produce` with schemas; the same tests on a real registry."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kctl.docs.tree import walk_commands
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import KctlResult, run_kctl
from tests.support.registry import running_apicurio, running_registry

PAGE = Path(__file__).parents[2] / "docs" / "registry.md"
FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
SECOND = FIRST | {"fields": [{"name": "id", "type": "long"}, NOTE]}
BAD = FIRST | {"fields": [{"name": "bad", "type": "string"}]}
PROTO = 'syntax = "proto3";\nmessage Order {\n  int64 id = 1;\n}\n'
EXAMPLES = [
    example
    for command in walk_commands()
    if command.path[1:2] == ("registry",)
    for example in command.examples
]


class Site:
    """A broker, a registry, and kctl on both."""

    def __init__(self, bootstrap_servers: str, url: str, directory: Path) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.url = url
        self.directory = directory

    def __call__(self, *args: str, stdin: str | None = None) -> KctlResult:
        env = {"KCTL_SCHEMA_REGISTRY_URL": self.url}
        return run_kctl("-b", self.bootstrap_servers, *args, stdin=stdin, env=env)

    def ok(self, *args: str, stdin: str | None = None) -> KctlResult:
        result = self(*args, stdin=stdin)
        assert result.exit_code == 0, result.stderr
        return result

    def file(self, name: str, schema: Any) -> str:
        path = self.directory / name
        path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
        return str(path)

    def topic(self, name: str) -> str:
        self.ok("topics", "create", name)
        return name


@pytest.fixture(scope="module")
def site_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def in_memory() -> Iterator[str]:
    with running_registry() as registry:
        yield registry.url


@pytest.fixture(scope="module")
def apicurio(site_broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("apicurio")
    with running_apicurio(directory, site_broker.bootstrap_servers) as url:
        yield url


@pytest.fixture(params=["in_memory", pytest.param("apicurio", marks=pytest.mark.kafka)])
def site(request: pytest.FixtureRequest, site_broker: RunningBroker, tmp_path: Path) -> Site:
    url = request.getfixturevalue(request.param)
    return Site(site_broker.bootstrap_servers, url, tmp_path)


def unique(site: Site, name: str) -> str:
    return f"{name}-{'real' if 'apis' in site.url else 'fake'}"


@pytest.mark.timeout(200)
def test_schemas_are_registered_compared_and_deleted(site: Site) -> None:
    subject = unique(site, "life")
    first, second = site.file("1.avsc", FIRST), site.file("2.avsc", SECOND)
    made = site.ok("registry", "register", subject, first, "-o", "json").json
    assert (made["version"], made["type"]) == (1, "AVRO")
    again = site.ok("registry", "register", subject, first, "-o", "json").json
    assert again == made
    site.ok("registry", "compatibility", subject, "--set", "backward")
    assert site.ok("registry", "compatibility", subject).output == "BACKWARD\n"
    assert site.ok("registry", "check", subject, second).exit_code == 0
    refused = site("registry", "check", subject, site.file("3.avsc", BAD), "-o", "json")
    assert (refused.exit_code, refused.json["compatible"]) == (3, False)
    site.ok("registry", "register", subject, second)
    rows = site.ok("registry", "versions", subject, "-o", "json").json
    assert [row["version"] for row in rows] == [1, 2]
    compared = site("registry", "diff", subject)
    assert compared.exit_code == 3
    assert '+      "name": "note",' in compared.output
    assert site("registry", "diff", f"{subject}:2", f"{subject}:2").exit_code == 0
    shown = site.ok("registry", "show", f"{subject}:1")
    assert json.loads(shown.output) == FIRST
    by_id = site.ok("registry", "show", f"id:{made['id']}", "-o", "json").json
    assert json.loads(by_id["schema"]) == FIRST
    listed = {row["subject"]: row for row in site.ok("registry", "list", "-o", "json").json}
    assert (listed[subject]["versions"], listed[subject]["latest"]) == (2, 2)
    assert site("registry", "delete", f"{subject}:1").exit_code == 1  # not confirmed
    site.ok("registry", "delete", f"{subject}:1", "--dry-run")
    site.ok("registry", "delete", f"{subject}:1", "--yes")
    rows = site.ok("registry", "versions", subject, "-o", "json").json
    assert [row["version"] for row in rows] == [2]
    site.ok("registry", "delete", subject, "--yes")
    assert subject not in site.ok("registry", "list", "-o", "name").output.split()


@pytest.mark.timeout(200)
def test_produced_records_are_read_by_confluents_client(site: Site) -> None:
    topic = site.topic(unique(site, "out"))
    schema = site.file("1.avsc", SECOND)
    lines = '{"id": 1, "note": "a"}\n{"id": 2}\n'
    args = ("produce", topic, "--value-format", "avro", "--value-schema", f"@{schema}")
    preview = site.ok(*args, "--dry-run", stdin=lines)
    assert "2 valid records" in preview.stderr
    site.ok(*args, stdin=lines)
    site.ok("produce", topic, "--value-format", "auto", stdin='{"id": 3}\n')
    context = SerializationContext(topic, MessageField.VALUE)
    consumer = Consumer(
        {"bootstrap.servers": site.bootstrap_servers, "group.id": topic}
        | {"auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values = [message.value() for message in consumer.consume(3, timeout=30)]
    consumer.close()
    with SchemaRegistryClient({"url": site.url}) as client:
        read = AvroDeserializer(client)
        decoded = [read(value, context) for value in values]
    expected = [{"id": 1, "note": "a"}, {"id": 2, "note": None}, {"id": 3, "note": None}]
    assert decoded == expected


@pytest.mark.timeout(200)
def test_records_of_confluents_client_are_consumed_and_produced_again(site: Site) -> None:
    topic = site.topic(unique(site, "in"))
    producer = Producer({"bootstrap.servers": site.bootstrap_servers})
    context = SerializationContext(topic, MessageField.VALUE)
    with SchemaRegistryClient({"url": site.url}) as client:
        serialize = AvroSerializer(client, json.dumps(SECOND))
        for number in range(3):
            value = serialize({"id": number, "note": None}, context)
            producer.produce(topic, value, key=f"k{number}")
    producer.flush(30)
    read = site.ok("consume", topic, "--exit", "--value-format", "avro")
    assert [json.loads(line)["id"] for line in read.output.splitlines()] == [0, 1, 2]
    lines = site.ok("consume", topic, "--exit", "--value-format", "auto", "-o", "jsonl").output
    assert json.loads(lines.splitlines()[0])["value"] == {"id": 0, "note": None}
    site.ok("produce", topic, "--input", "json", "--value-format", "auto", stdin=lines)
    raw = site.ok("consume", topic, "--exit", "--format", "%s{hex}\\n").output.splitlines()
    assert raw[:3] == raw[3:]
    found = site.ok("consume", topic, "-e", "--value-format", "avro", "--grep", 'v:"id": 2')
    assert len(found.output.splitlines()) == 2


def test_protobuf_and_keys(site: Site) -> None:
    topic = site.topic(unique(site, "proto"))
    site.ok("registry", "register", f"{topic}-value", site.file("o.proto", PROTO))
    site.ok("registry", "register", f"{topic}-key", site.file("k.avsc", '"string"'))
    both = ("--key-format", "avro", "--value-format", "protobuf")
    site.ok("produce", topic, "-K", "|", *both, stdin='k1|{"id": "7"}\n123|{"id": 8}\n')
    shown = site.ok("consume", topic, "-e", *both, "--format", "%k %s\\n")
    assert shown.output == '"k1" {"id": "7"}\n"123" {"id": "8"}\n'


def test_record_that_does_not_fit_names_its_line_and_sends_nothing(site: Site) -> None:
    topic = site.topic(unique(site, "bad"))
    site.ok("registry", "register", f"{topic}-value", site.file("1.avsc", FIRST))
    result = site("produce", topic, "--value-format", "avro", stdin='{"id": "x"}\n')
    assert result.exit_code == 1
    assert "-:1: value: id: 'x' is not an integer" in result.stderr
    assert site.ok("consume", topic, "--exit").output == ""
    site.ok("produce", topic, stdin="plain\n")
    strict = site("consume", topic, "--exit", "--value-format", "avro")
    assert strict.exit_code == 1
    assert f"cannot decode the value of {topic}-0@0" in strict.stderr
    assert site.ok("consume", topic, "--exit", "--value-format", "auto").output == "plain\n"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("registry show nope", 1, "no such subject: 'nope'"),
        ("registry show id:x", 2, "is not a schema"),
        ("registry show id:99999", 1, "99999"),
        ("registry delete id:1 --yes", 2, "is not a subject"),
        ("registry delete nope --yes", 1, "no such subject"),
        ("registry check nope {avsc}", 1, "no such subject"),
        ("registry register s /nonexistent.avsc", 1, "cannot read /nonexistent.avsc"),
        ("registry register s {avsc} --reference x", 2, "is not a reference"),
        ("registry register s {text}", 2, "the schema type of"),
        ("registry list --registry nonsense", 2, "not the URL of a registry"),
        ("registry list --registry http://127.0.0.1:1", 1, "cannot reach the registry"),
        ("produce t --value-schema s", 2, "need --value-format"),
        ("produce t --value-format avro", 1, "t-value"),
    ],
)
def test_bad_input_is_one_clear_error(
    in_memory: str,
    site_broker: RunningBroker,
    tmp_path: Path,
    words: str,
    status: int,
    message: str,
) -> None:
    site = Site(site_broker.bootstrap_servers, in_memory, tmp_path)
    files = {"avsc": site.file("a.avsc", FIRST), "text": site.file("a.txt", FIRST)}
    before = site.ok("registry", "list", "--deleted", "-o", "json").json
    result = site(*words.format(**files).split(), stdin="{}\n")
    assert result.exit_code == status, result.stderr
    assert message in result.stderr
    assert site.ok("registry", "list", "--deleted", "-o", "json").json == before


def test_commands_of_the_page_work(
    in_memory: str, site_broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(site_broker.bootstrap_servers, in_memory, tmp_path)
    monkeypatch.chdir(tmp_path)
    site.topic("orders")
    site.file("order.avsc", FIRST)
    site.file("next.avsc", SECOND)
    site.file("orders.jsonl", '{"id": 1}\n')
    commands = re.findall(r"^\$ kctl (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) == 11
    # `delete` comes last: it would take away the schema that the records below need.
    ordered = sorted(commands, key=lambda words: "delete" in words)
    for words in ordered:
        assert site(*words.split()).exit_code == 0, words


@pytest.fixture
def example_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """What the examples speak of: 42 schemas, three of them versions of orders-value."""
    monkeypatch.chdir(tmp_path)
    with running_registry() as registry:
        site = Site("127.0.0.1:1", registry.url, tmp_path)
        site.file("o.proto", 'import "a.proto";\n' + PROTO)
        registry.state.subjects["address"] = [registry.state.id_of({"schema": PROTO})]
        for number in range(41):
            schema_id = registry.state.id_of({"schema": json.dumps(SECOND | {"doc": f"{number}"})})
            if number < 3:
                registry.state.subjects.setdefault("orders-value", []).append(schema_id)
        site.file("order.avsc", SECOND)
        yield site


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(example_site: Site, example: str) -> None:
    words = shlex.split(example.replace("http://localhost:8081", example_site.url))[1:]
    result = example_site(*words)
    expected = 3 if words[1] == "diff" else 0  # it found a difference
    assert result.exit_code == expected, result.stderr
    assert "error" not in result.stderr


def test_registry_is_required(tmp_path: Path) -> None:
    result = run_kctl("registry", "list")
    assert result.exit_code == 2
    assert "no schema registry specified" in result.stderr
