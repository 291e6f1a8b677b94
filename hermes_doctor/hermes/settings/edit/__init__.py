"""Edit config.yaml and .env without changing any byte but the named values.

`planning.setting_edits` turns these edits into steps of a plan.
"""
