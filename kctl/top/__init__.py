"""`kctl top`: a live view of a cluster on a terminal. Textual is imported by `app` only."""
