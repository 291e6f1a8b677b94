"""Which Hermes is installed, in which environment, and what is broken in it.

It reads files and never runs Hermes. `probes` asks it once a run.
"""
