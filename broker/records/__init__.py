"""The record batch: header, records, control records, compression, crc, builder, old formats.

Bytes in, bytes out: no files, no network. May use protocol, model, errors, clock.
"""
