"""What a home needs from the network: hosts, certificates, providers and their answers.

Only `Probes` uses it, and sends requests only where the operator asked for them.
"""
