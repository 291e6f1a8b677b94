"""Edits of config.yaml and .env that change the named values and no other byte.

`planning.setting_edits` makes steps of a plan from them.
"""
