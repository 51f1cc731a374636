"""Every message in every version: decoding returns what was encoded."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.protocol.codec import decode, encode
from broker.protocol.schema import Message
from tests.protocol.golden import declared
from tests.protocol.strategies import messages

# Seeded, and few examples for each: there are six hundred, and the golden samples beside them.
QUICK = settings(
    max_examples=5,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls in declared()])
@QUICK
@given(data=st.data())
def test_message_with_unknown_tagged_fields_comes_back_as_it_was(
    cls: type[Message], data: st.DataObject
) -> None:
    for version in declared()[cls]:
        message = data.draw(messages(cls, version))
        encoded = encode(message, version)
        for buffer in (encoded, memoryview(encoded)):
            decoded = decode(cls, buffer, version)
            assert decoded == message
        assert encode(decoded, version) == encoded
