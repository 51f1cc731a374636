"""Side-by-side measurements, printed as ratios: `python -m bench [name …]`.

One module per subject; each has a `run()` that yields `Comparison`s. Both sides are measured in one
run on one machine, because nothing else can be compared. Not part of the tests.
"""
