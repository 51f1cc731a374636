"""Files of a log, found and opened read-only, filtered and decoded."""
