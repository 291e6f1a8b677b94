"""Diagnose and repair a Hermes Agent gateway without losing data."""

__version__ = "0.1.0"
