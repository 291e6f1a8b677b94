"""This process and its machine: bounded reads, durable writes, privileges, workers, signals.

It knows nothing of Hermes. Everything else builds on it; it imports only `model`.
"""
