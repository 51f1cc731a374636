"""Monitoring of clusters from outside: cycles, history, and the endpoint that serves them."""
