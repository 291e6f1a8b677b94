"""The transaction: plan, preflight, backup, stage, commit, verify, receipt; recovery and undo.

It carries out `steps` under a `records` journal, with copies in the `backup` vault.
"""
