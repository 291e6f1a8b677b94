"""Values and tools for all rooms: model, texts, secrets, the system, the terminal, homes.

It imports nothing of this tool but itself.
"""
