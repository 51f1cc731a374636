"""SCRAM: the examples of its RFCs, and brokers that violate the protocol."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.plain import plain_client
from broker.security.sasl import SaslError
from broker.security.scram import (
    ScramMechanism,
    client_proof,
    parse_server_final,
    parse_server_first,
    salted_password,
    sasl_name,
    scram_client,
    server_signature,
)

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_exchange_matches_the_example_of_rfc_7677() -> None:
    conversation = scram_client(ScramMechanism.SHA_256, "user", "pencil", NONCE)
    assert next(conversation) == f"n,,n=user,r={NONCE}".encode()
    assert (
        conversation.send(SERVER_FIRST.encode())
        == (
            f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        ).encode()
    )
    with pytest.raises(StopIteration):
        conversation.send(SERVER_FINAL.encode())


def test_keys_and_proofs_match_the_example_of_rfc_5802() -> None:
    nonces = "fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
    auth_message = (
        f"n=user,r=fyko+d2lbbFgONRv9qkxdawL,r={nonces},s=QSXCR+Q6sek8bf92,i=4096,c=biws,r={nonces}"
    ).encode()
    salted = salted_password("sha1", "pencil", base64.b64decode("QSXCR+Q6sek8bf92"), 4096)
    proof = client_proof("sha1", salted, auth_message)
    signature = server_signature("sha1", salted, auth_message)
    assert base64.b64encode(proof) == b"v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    assert base64.b64encode(signature) == b"rmF9pqV8S7suAoZWja4dJRkFsKQ="


def test_broker_with_a_wrong_signature_is_rejected() -> None:
    conversation = scram_client(ScramMechanism.SHA_256, "user", "pencil", NONCE)
    next(conversation)
    conversation.send(SERVER_FIRST.encode())
    with pytest.raises(SaslError, match="did not prove"):
        conversation.send(b"v=" + base64.b64encode(bytes(32)))


@pytest.mark.parametrize(
    ("server_first", "words"),
    [
        (f"r=other{NONCE},s=AAAA,i=4096", "does not begin with"),
        (f"r={NONCE},s=AAAA,i=4096", "does not begin with"),
        (f"r={NONCE}x,s=AAAA,i=4095", "4095 iterations are too few"),
        (f"r={NONCE}x,s=?,i=4096", "not base64"),
        (f"r={NONCE}x,i=4096", "is malformed"),
        (f"m=extension,r={NONCE}x,s=AAAA,i=4096", "is malformed"),
        ("", "is malformed"),
    ],
)
def test_invalid_first_server_message_is_rejected(server_first: str, words: str) -> None:
    with pytest.raises(SaslError, match=words):
        parse_server_first(server_first, NONCE)


@pytest.mark.parametrize(
    ("server_final", "words"), [("e=unknown-user", "unknown-user"), ("x=1", "is malformed")]
)
def test_error_in_the_last_server_message_is_reported(server_final: str, words: str) -> None:
    with pytest.raises(SaslError, match=words):
        parse_server_final(server_final)


@given(st.text())
def test_escaped_names_have_no_comma_and_round_trip(name: str) -> None:
    sent = sasl_name(name)
    assert "," not in sent
    assert sent.replace("=2C", ",").replace("=3D", "=") == name


def test_nonces_differ() -> None:
    firsts = {next(scram_client(ScramMechanism.SHA_512, "user", "pencil")) for _ in range(8)}
    assert len(firsts) == 8


def test_plain_sends_one_token_and_accepts_any_response() -> None:
    conversation = plain_client("alice", "s3cret")
    assert next(conversation) == b"\0alice\0s3cret"
    with pytest.raises(StopIteration):
        conversation.send(b"")
