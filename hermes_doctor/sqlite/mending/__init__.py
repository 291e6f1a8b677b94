"""Repairs of a private copy of a database, from the least to the most invasive.

Each takes the path of the copy, changes it in place, and says in sentences what it did. None
of them is trusted: what comes out is proven before it is swapped in.
"""
