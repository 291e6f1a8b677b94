"""The facts of one home, each read once in a run and without changing anything.

Checks and fixes ask the class `Probes`; the other modules are what only it needs.
"""
