"""The broker and kctl on systems that are not Linux, as far as Linux can show it.

`posix/` has a `sitecustomize` that removes what only Linux has from the standard library, in every
process whose PYTHONPATH names the directory: `make test-portable`.
"""
