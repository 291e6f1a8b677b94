"""Probes: read-only questions about one home, each answered once per run.

Checks and fixes use the class `Probes`; the other modules are only used by it.
"""
