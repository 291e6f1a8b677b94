"""Tools of the repository, which install Hermes releases and extract facts from them."""
