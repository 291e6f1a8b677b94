"""Repair a private copy of a database, from the least to the most invasive method.

`planning.database_repair` chooses among the methods; nothing here changes a file of a home.
"""
