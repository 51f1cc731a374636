"""Side-by-side measurements, printed as ratios: `python -m bench [name …]`.

One module per subject; each has a `run()` that yields `Comparison`s. Both sides are always measured
in one run on one machine: absolute figures from different runs or machines are not comparable.
Benchmarks are not part of the tests.
"""
