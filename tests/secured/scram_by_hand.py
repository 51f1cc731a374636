"""The client's last SCRAM message, written from RFC 5802 alone."""

import base64
import hashlib
import hmac


def client_final(first: str, server_first: str, password: str) -> bytes:
    """The answer to `server_first` for SCRAM-SHA-256, where `first` may have extensions."""
    fields = dict(part.split("=", 1) for part in server_first.split(","))
    salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    key = hmac.digest(salted, b"Client Key", "sha256")
    bare = f"c=biws,r={fields['r']}"
    message = f"{first.removeprefix('n,,')},{server_first},{bare}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
    proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    return f"{bare},p={base64.b64encode(proof).decode()}".encode()
