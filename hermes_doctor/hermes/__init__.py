"""What this tool knows about Hermes: settings, logs, stores, processes, installations.

It only reads; what acts on a gateway is in the room `repair`.
"""
