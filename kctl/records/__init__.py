"""Records as people write and read them: lines, JSON lines, kcat's format letters; where to begin.

Pure: no client, no terminal. `produce`, `consume`, `perf` and the resets of offsets use it.
"""
