"""Tells why a Hermes Agent gateway is silent, and repairs it without losing a byte."""

__version__ = "0.1.0"
