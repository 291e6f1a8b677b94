"""The vault: what a backup covers, how files are saved, shared, verified and removed.

`repair` backs up before it changes anything; `schedule` and `cli` run it by themselves.
"""
