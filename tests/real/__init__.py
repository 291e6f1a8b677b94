"""Tests with real Hermes releases, their real gateways and the built wheel."""
