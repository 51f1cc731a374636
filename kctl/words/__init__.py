"""What people type on a command line, understood: topics, partitions, entities, settings.

Pure: text in, typed values out, or a usage error that says how to write it.
"""
