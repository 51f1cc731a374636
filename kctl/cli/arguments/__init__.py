"""Parsing of command-line arguments: topics, partitions, entities, configs.

Pure functions: text in, typed values out, or a usage error that shows the expected form.
"""
