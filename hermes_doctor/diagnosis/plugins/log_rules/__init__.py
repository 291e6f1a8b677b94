"""Log rules: match log lines, group them into incidents and report findings.

The format of the rules is described in docs/log-rules.md. `logs` reads the entries.
"""
