"""Everything that was written down about a gateway, read as one stream of entries.

`plugins.log_rules` says what the entries mean.
"""
