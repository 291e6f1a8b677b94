"""Makes updates of Hermes reversible: a verified backup before, an examination after.

It uses `backup`, `examination` and `repair`; it does not know `watch`.
"""
