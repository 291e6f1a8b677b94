"""Helpers of the tests in tests/real, which run real releases of Hermes."""
