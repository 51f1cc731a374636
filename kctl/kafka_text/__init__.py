"""Kafka's own words: what `--format kafka` prints, line for line what the tools of 3.9 print.

Pure functions from what the admin room found to lines of text.
"""
