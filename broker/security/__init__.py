"""TLS and SASL mechanisms; pure but for reading certificates.

A mechanism is a generator: it yields what its side says and is sent what the other side answered.
May use model, errors. The net room carries the tokens without knowing what is in them.
"""
