"""Read running processes from the kernel, find the gateways among them, and read their files.

It only reads. `supervisors` and `probes` build on it.
"""
