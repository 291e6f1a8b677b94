"""Tests of what reads SQLite files itself."""
