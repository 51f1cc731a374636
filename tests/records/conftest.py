"""Fixtures of the record tests."""

from types import ModuleType

import pytest

from tests.records.forms import FORM_NAMES, FORMS


@pytest.fixture(params=FORMS, ids=FORM_NAMES)
def decoder(request: pytest.FixtureRequest) -> ModuleType:
    """The decoder, once as Python runs it and once compiled, where that was built."""
    form: ModuleType = request.param
    return form
