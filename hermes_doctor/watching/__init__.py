"""Looking again and again: what changed is told, and healed where that was asked for."""
