"""Generates man pages and shell completions from the command tree: `python -m kctl.docs`.

The results are committed; `--check` (part of `make check`) fails if they are out of date.
"""
