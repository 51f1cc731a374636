"""Login modules of brokers."""

import pytest

from broker.security.jaas import JaasError, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_options_are_unquoted() -> None:
    found = parse_jaas(
        f'{PLAIN} required username="a" password="quote \\" and \\\\" user_a-b.c="1;2"\n x=y ;'
    )
    assert found.module == "PlainLoginModule"
    assert found.options == {
        "username": "a",
        "password": 'quote " and \\',
        "user_a-b.c": "1;2",
        "x": "y",
    }


def test_module_without_options_is_enough() -> None:
    assert parse_jaas("x.ScramLoginModule REQUIRED;").options == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PlainLoginModule;",
        f'{PLAIN} required password="canary"',
        f'{PLAIN} required password="canary;',
        f"{PLAIN} required password=canary; {PLAIN} required;",
        "com.sun.security.auth.module.JndiLoginModule required canary=x;",
    ],
)
def test_malformed_setting_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)
    assert "canary" not in str(caught.value)


def test_repr_contains_no_secrets() -> None:
    assert "hidden" not in repr(parse_jaas('x.M required password="hidden";'))
