"""② Bytes ↔ messages: no asyncio, no files. May use model and errors."""
