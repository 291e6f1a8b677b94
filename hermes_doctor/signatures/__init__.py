"""Log rules: what lines mean, and what came of them. See docs/log-rules.md for the format."""
