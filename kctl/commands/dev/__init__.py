"""`kctl dev`."""
