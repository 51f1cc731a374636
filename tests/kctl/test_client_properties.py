"""Java's client.properties: parsed like Java does, refused where kctl lacks a setting."""

from pathlib import Path

import pytest

from kctl.cli.client_properties import read_client_properties
from kctl.cli.errors import CliError
from tests.support.kctl import Kctl


def test_regression_separators_that_java_ignores_do_not_end_a_line(tmp_path: Path) -> None:
    """A password may contain U+2028 or a vertical tab: Java ends lines at CR and LF only."""
    path = tmp_path / "client.properties"
    path.write_text("a=one\u2028two\x0bthree\x85\n")
    assert read_client_properties(path) == {"a": "one\u2028two\x0bthree\x85"}


def test_malformed_escape_is_refused_without_quoting_the_value(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("sasl.password=secret\\u00g0\n")
    with pytest.raises(CliError, match="Malformed") as caught:
        read_client_properties(path)
    assert str(path) in caught.value.message
    assert "secret" not in caught.value.message


def test_refusal_reaches_the_user_before_anything_is_sent(kctl: Kctl, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_SSL\nsasl.jaas.config=secret\n")
    result = kctl("brokers", "list", "-b", "nowhere:1", "--command-config", str(path))
    assert result.exit_code == 2
    assert "sasl.mechanism is missing" in result.stderr
    assert "secret" not in result.stderr


def test_missing_file_is_named(kctl: Kctl) -> None:
    result = kctl("brokers", "list", "-b", "nowhere:1", "--command-config", "/no/such/file")
    assert result.exit_code == 1
    assert "/no/such/file" in result.stderr
