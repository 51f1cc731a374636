"""`dump-log --stats`: statistics of the segments of a partition."""
