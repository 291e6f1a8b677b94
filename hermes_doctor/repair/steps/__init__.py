"""The kinds of steps that a plan consists of; each is shown beforehand and can be undone.

`planning` and the fixes make steps; `transaction` executes them.
"""
