"""The kinds of steps that a plan is made of: each is shown before and undone after.

`planning` and the fixes make steps; `repair` carries them out.
"""
