"""Find the installed Hermes, its virtual environment, and what is broken in them.

It reads files and never runs Hermes. `probes` uses it once per run.
"""
