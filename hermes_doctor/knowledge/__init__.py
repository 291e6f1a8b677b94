"""What is known about each Hermes release: JSON files that `tools/` makes from the releases.

It holds data and the code that reads it, no judgement; `settings` and `probes` use it.
"""
