"""TLS and SASL as the user sets them, under Java's names, for our client and for librdkafka.

Secrets come from client.properties, from what it refers to (`${env:…}`, `${file:…}`), from the
environment or from a question on the terminal. They are in no repr and in no message.
"""
