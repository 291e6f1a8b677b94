"""The operator's own settings for this tool: `config.toml`, and the findings that are muted."""
