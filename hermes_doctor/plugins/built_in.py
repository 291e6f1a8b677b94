"""How many checks and fixes this version has; `make index` writes this file."""

CHECKS = 121
FIXES = 75
