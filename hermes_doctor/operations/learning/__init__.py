"""Ask an installed Hermes about its own databases and settings, and store the answers.

`lessons/` has the scripts that run under the interpreter of that Hermes. `tools/` uses the same
scripts to write the files in `knowledge/`.
"""
