"""How many checks and fixes this version has; `make index` writes this file."""

CHECKS = 118
FIXES = 75
