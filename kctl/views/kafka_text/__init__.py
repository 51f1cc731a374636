"""The output of Kafka's own tools: what `--format kafka` prints, identical to Kafka 3.9.

Pure functions from models to lines of text.
"""
