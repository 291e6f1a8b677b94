"""Read all logs and records about a gateway as one stream of entries.

`plugins.log_rules` interprets the entries.
"""
