"""The wire protocol: messages, their codecs, headers and frames. No I/O."""
