"""Fixtures of the record tests."""

from types import ModuleType

import pytest

from tests.records.forms import FORM_NAMES, FORMS


@pytest.fixture(params=FORMS, ids=FORM_NAMES)
def decoder(request: pytest.FixtureRequest) -> ModuleType:
    """The decoder: interpreted, and compiled if that form was built."""
    form: ModuleType = request.param
    return form
