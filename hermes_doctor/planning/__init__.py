"""From one finding to steps: the building blocks that fixes call. Writes nothing.

It asks `probes` and makes `steps`; `repair` carries them out.
"""
