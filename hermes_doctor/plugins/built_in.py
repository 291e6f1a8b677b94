"""How many checks and fixes this version has; `make index` writes this file."""

CHECKS = 119
FIXES = 75
