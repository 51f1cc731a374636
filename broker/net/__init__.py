"""① Sockets: listener and connections (inbound), client (outbound: other brokers, and kctl).

May use protocol, metrics, model, errors, clock.
"""
