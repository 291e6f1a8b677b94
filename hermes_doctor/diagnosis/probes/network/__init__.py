"""Check what a home needs from the network: hosts, certificates and providers.

`Probes` and `provider_switch` use it, and it sends requests only if the operator asked for them.
"""
