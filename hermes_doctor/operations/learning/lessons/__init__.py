"""Scripts that run under the interpreter of a Hermes and import nothing from this project."""
