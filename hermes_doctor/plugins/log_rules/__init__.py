"""Log rules: which lines mean what, and which incidents and findings follow from them.

The format is described in docs/log-rules.md. `logs` reads the entries.
"""
