"""An update of Hermes with a way back: a proven backup before it, an examination after it.

It uses `backup`, `examination` and `repair`; it does not know `watch`.
"""
