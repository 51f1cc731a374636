"""The engine of `kctl reassign run`: runner, throttling, progress, rollback."""
