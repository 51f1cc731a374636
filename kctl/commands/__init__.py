"""One package or module per noun. A command parses, calls admin or plans, and shows the result.

Each module has an `app`; `kctl/app.py` has its row.
"""
