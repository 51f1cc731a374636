"""Arrow tables → files: content types, formats, directories, results."""
