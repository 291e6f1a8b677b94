"""Repairs of a private copy of a database, from the least to the most invasive.

`planning.database_repair` chooses among them; nothing here touches the file of a home.
"""
