"""Requests from decoded frame to response: the API table, dispatch, and what handlers share."""
