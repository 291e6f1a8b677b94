"""Edits of config.yaml and .env that touch the named values and not one byte more.

`yamltext` and `envtext` turn bytes and edits into bytes and know nothing of homes; `planning` makes
steps of them. Whoever edits says what shall be true afterwards, and the result is read again as
Hermes reads it: unless exactly that changed, nothing is done.
"""
