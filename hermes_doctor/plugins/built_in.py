"""How many checks and fixes this version has; `make index` writes this file."""

CHECKS = 120
FIXES = 75
