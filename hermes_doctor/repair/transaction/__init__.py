"""Apply a repair plan as a transaction that can be rolled back, recovered and undone.

The phases are preflight, backup, stage, commit, verify, receipt. It executes the `steps`,
records its progress in a `records` journal and saves the old files in the `backup` vault.
"""
