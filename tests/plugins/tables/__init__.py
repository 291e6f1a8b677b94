"""Tests of hermes_doctor.plugins.tables."""
