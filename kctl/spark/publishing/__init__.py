"""The export directory: staging, manifest, and publication by one rename."""
