"""Typer plumbing: options, arguments, help, confirmation, output, errors, contexts, security."""
