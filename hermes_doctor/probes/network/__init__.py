"""Check what a home needs from the network: hosts, certificates and providers.

Only `Probes` uses it, and it sends requests only if the operator asked for them.
"""
