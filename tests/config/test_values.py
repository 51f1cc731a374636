import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.values import ConfigError, ConfigType, Password, parse_value, value_text

NUMBERS = {ConfigType.SHORT: 2**15, ConfigType.INT: 2**31, ConfigType.LONG: 2**63}


@pytest.mark.parametrize(
    ("text", "config_type", "value"),
    [
        (" TRUE ", ConfigType.BOOLEAN, True),
        ("False", ConfigType.BOOLEAN, False),
        (" +7 ", ConfigType.INT, 7),
        ("007", ConfigType.LONG, 7),
        ("1e3", ConfigType.DOUBLE, 1000.0),
        (".5d", ConfigType.DOUBLE, 0.5),
        ("", ConfigType.LIST, ()),
        (" a , b ", ConfigType.LIST, ("a", "b")),
        ("a,", ConfigType.LIST, ("a", "")),
        (" text ", ConfigType.STRING, "text"),
    ],
)
def test_text_is_parsed_as_in_java(text: str, config_type: ConfigType, value: object) -> None:
    assert parse_value("key", text, config_type) == value


@pytest.mark.parametrize("text", ["", "1_000", "1.0", "0x10", "\u0661", "abc", "--1"])
@pytest.mark.parametrize("config_type", NUMBERS)
def test_text_that_is_not_a_number_in_java_is_refused(text: str, config_type: ConfigType) -> None:
    problem = f"Invalid value {text} for configuration key: Not a number of type {config_type.name}"
    with pytest.raises(ConfigError) as refusal:
        parse_value("key", text, config_type)
    assert str(refusal.value) == problem


@pytest.mark.parametrize(("config_type", "limit"), NUMBERS.items())
def test_number_out_of_range_is_refused(config_type: ConfigType, limit: int) -> None:
    assert parse_value("key", str(limit - 1), config_type) == limit - 1
    assert parse_value("key", str(-limit), config_type) == -limit
    for beyond in (limit, -limit - 1):
        with pytest.raises(ConfigError, match="Not a number"):
            parse_value("key", str(beyond), config_type)


@pytest.mark.parametrize("text", ["yes", "1", ""])
def test_booleans_are_only_true_and_false(text: str) -> None:
    with pytest.raises(ConfigError, match="Expected value to be either true or false"):
        parse_value("key", text, ConfigType.BOOLEAN)


@pytest.mark.parametrize("text", ["half", "inf", "nan", "1_0.5", "1e", ""])
def test_text_that_is_not_a_double_in_java_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
        parse_value("key", text, ConfigType.DOUBLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (-2.5e10, "-2.5E10"),
        (1e22, "1.0E22"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
    ],
)
def test_value_is_printed_as_in_java(value: object, text: str | None) -> None:
    assert value_text(value) == text


@given(st.floats(allow_nan=False))
def test_double_round_trips_through_its_text(value: float) -> None:
    text = value_text(value)
    assert text is not None
    assert parse_value("key", text, ConfigType.DOUBLE) == value


def test_repr_of_a_password_is_hidden() -> None:
    secret = parse_value("key", " s3cret ", ConfigType.PASSWORD)
    assert str(secret) == " s3cret ".strip()
    assert repr(secret) == "[hidden]"
    assert isinstance(secret, Password)
