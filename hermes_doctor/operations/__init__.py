"""What goes on for weeks: watch, history, updates, learning, another provider."""
