"""One module per noun. A command parses, calls the admin room or a plan, and shows the answer.

Each module has an `app`; `kctl/app.py` has its row.
"""
