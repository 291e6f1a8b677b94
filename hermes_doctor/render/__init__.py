"""A report, a plan or a receipt as text for people and as JSON.

It sees finished values only; `cli` decides what is shown.
"""
