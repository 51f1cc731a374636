"""TLS contexts and SASL mechanisms. No I/O except reading certificates.

A mechanism is a generator: it yields its own tokens and receives those of the other side. The net
package carries the tokens without interpreting them.
"""
