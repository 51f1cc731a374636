"""① Sockets: the listener and its connections (inbound) and the client (outbound: other brokers, and kctl).

May use protocol, metrics, model, errors, clock.
"""
