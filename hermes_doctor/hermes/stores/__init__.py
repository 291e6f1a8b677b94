"""Read, examine and repair the stores: the JSON files that Hermes keeps beside its databases.

`planning.store_repair` turns a repair into steps.
"""
