"""Probes: read-only questions about one home, each answered once per run.

Checks and fixes ask the class `Probes`; `api`, `planning`, `gateway` and `provider_switch` also
use single modules.
"""
