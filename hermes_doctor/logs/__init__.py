"""What the programs of a home wrote down: sources, entries, rules, incidents."""
