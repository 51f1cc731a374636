"""Man pages and shell completions, written from the command tree: `python -m kctl.docs`.

What they say is what `--help` says. The results are committed, and `--check` (part of `make check`)
tells when they are behind.
"""
