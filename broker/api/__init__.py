"""③ What the broker answers: one module per API, one row per API in table.py, dispatch.py in between."""
