"""Tests of hermes_doctor.plugins.log_rules."""
