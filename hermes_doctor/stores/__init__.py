"""The JSON files that Hermes keeps beside its databases: read, judged, and repaired as text.

`planning.store_repair` turns a repair into steps.
"""
