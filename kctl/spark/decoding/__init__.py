"""Record batches and JSON values → Arrow."""
