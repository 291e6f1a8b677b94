"""Tools of the repository: they install Hermes releases and learn from them."""
