"""Subjects of certificates as Java's X500Principal.getName() wrote them (recorded)."""

import json
from pathlib import Path

import pytest

from broker.security.der import DerError
from broker.security.distinguished_name import subject_of

SUBJECTS = json.loads(
    (Path(__file__).parents[1] / "golden" / "keystores" / "subjects.json").read_text()
)


@pytest.mark.parametrize("row", SUBJECTS, ids=lambda row: row["java"])
def test_subject_is_written_as_java_writes_it(row: dict[str, str]) -> None:
    assert subject_of(bytes.fromhex(row["der"])) == row["java"]


def test_truncated_certificate_is_an_error() -> None:
    der = bytes.fromhex(SUBJECTS[0]["der"])
    for length in range(len(der)):
        with pytest.raises(DerError):
            subject_of(der[:length])
