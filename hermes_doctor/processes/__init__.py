"""Running processes: what the kernel says, which are gateways, what a gateway writes down.

It reads and changes nothing. `supervisors` and `probes` build on it.
"""
