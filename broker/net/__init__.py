"""Sockets. Inbound: listener, connection, transport. Outbound: client, for brokers and kctl.

Inbound, a request passes poller → connection → dispatcher (in broker.api); the states of a
connection are in `connection_state`, the limits of all connections in `connection_quotas`.
"""
