"""Implements the command line, with one module for each command.

Each command imports what it needs when it runs. Nothing but `__main__` imports this package.
"""
