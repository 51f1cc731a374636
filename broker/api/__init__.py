"""③ What the broker answers: one module and one row of table.py per API; dispatch.py between."""
