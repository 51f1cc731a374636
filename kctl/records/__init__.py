"""Text forms of records: lines, JSON lines, kcat's format letters, filters.

No client and no terminal. Used by `produce` and `consume`.
"""
