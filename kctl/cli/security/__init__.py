"""TLS and SASL settings under Java's names, for our client and for librdkafka.

Secrets come from client.properties, from its references (`${env:…}`, `${file:…}`), from the
environment or from a prompt. They appear in no repr and in no message.
"""
