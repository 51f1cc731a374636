"""Pure functions from the model to plans: no I/O, no tables."""
