"""What tables in YAML have in common: lists with lines for mistakes, and patterns."""
