"""Facts about each Hermes release, in JSON files that `tools/` generates from the releases.

It contains only data and the code that reads it; `settings` and `probes` judge by it.
"""
