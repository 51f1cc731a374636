"""Tasks, and the runner that executes them on Spark."""
