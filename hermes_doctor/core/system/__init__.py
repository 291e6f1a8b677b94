"""Access to the operating system: bounded reads, durable writes, privileges, workers, signals.

It knows nothing about Hermes. All other packages build on it; it imports only `model` and `lazy`.
"""
