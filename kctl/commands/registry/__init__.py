"""`kctl registry`: subjects and schemas of a schema registry."""
