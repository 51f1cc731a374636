"""JAAS files, and which of their login modules listeners get."""

from pathlib import Path

import pytest

from broker.config import BrokerConfig, ConfigError, parse_config
from broker.security.jaas import JaasError, parse_jaas
from broker.security.jaas_file import parse_jaas_file
from broker.server.kafka_opts import with_jaas_file

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
FILE = f"""
// All listeners; {{ braces in comments }} do not count.
KafkaServer {{
    {PLAIN} required
        user_alice="canary; }} \\" // 1"   /* a comment */
        user_bob='b';
    {SCRAM} required username="broker" password="canary-2";
}};
outside.KafkaServer {{ {PLAIN} required user_carol="c"; }};

Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required username=x password=y; }};
"""


def test_sections_contain_their_entries() -> None:
    sections = parse_jaas_file(FILE)
    assert {name: len(entries) for name, entries in sections.items()} == {
        "KafkaServer": 2,
        "outside.KafkaServer": 1,
        "Client": 1,
    }
    plain, scram = (parse_jaas(entry) for entry in sections["KafkaServer"])
    assert plain.options == {"user_alice": 'canary; } " // 1', "user_bob": "b"}
    assert (scram.module, scram.options["password"]) == ("ScramLoginModule", "canary-2")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("KafkaServer", 1),
        ("\nKafkaServer {", 2),
        (f"KafkaServer {{\n {PLAIN} required user_a=canary", 2),
        (f'KafkaServer {{ {PLAIN} required user_a="canary;\n }};', 1),
        (f"KafkaServer {{ {PLAIN} required user_a=canary }};", 1),
        ("KafkaServer {}\nClient {};", 2),
        ("{};", 1),
    ],
)
def test_malformed_file_is_refused_with_its_line_and_without_quoting_it(
    text: str, line: int
) -> None:
    with pytest.raises(JaasError, match=rf"^line {line}: ") as caught:
        parse_jaas_file(text)
    assert "canary" not in str(caught.value)


def config() -> BrokerConfig:
    return parse_config(
        {
            "listeners": "INSIDE://:1,OUTSIDE://:2,OPEN://:3",
            "listener.security.protocol.map": (
                "INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,OPEN:PLAINTEXT"
            ),
            "inter.broker.listener.name": "OPEN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.inside.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        }
    )


def users(found: BrokerConfig, key: str) -> list[str]:
    return sorted(parse_jaas(found.originals[key]).options)


def test_listeners_get_the_logins_of_their_section_unless_they_have_a_setting(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a file.conf"
    path.write_text(FILE)
    options = f'-Xmx1g "-Djava.security.auth.login.config={path}" -Dx=y'
    found = with_jaas_file(config(), {"KAFKA_OPTS": options})
    new = found.originals.keys() - config().originals.keys()
    inside, outside = (f"listener.name.{name}.plain.sasl.jaas.config" for name in LISTENERS)
    assert new == {inside, outside}
    assert users(found, inside) == ["user_alice", "user_bob"]
    assert users(found, outside) == ["user_carol"]


LISTENERS = ("inside", "outside")


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing.conf"
    with pytest.raises(ConfigError, match=r"KAFKA_OPTS: .*missing\.conf.*No such file"):
        with_jaas_file(config(), {"KAFKA_OPTS": f"-Djava.security.auth.login.config={path}"})


def test_without_the_option_nothing_changes() -> None:
    assert with_jaas_file(found := config(), {"KAFKA_OPTS": "-Xmx1g"}) is found
