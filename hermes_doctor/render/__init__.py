"""Outputs: they see a report, a plan or a receipt, and nothing else."""
