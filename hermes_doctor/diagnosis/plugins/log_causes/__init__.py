"""Read log entries: which place reports them, what it tried, why that failed and how it ended.

The tables of causes, places, operations and successes are described in docs/log-rules.md.
"""
