"""What a check, a fix and a log rule are, and how folders of them are found and loaded.

`examination` runs the checks and `repair` the fixes.
"""
