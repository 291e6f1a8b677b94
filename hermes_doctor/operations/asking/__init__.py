"""Ask the bot one real question: through its gateway, or through its model provider."""
