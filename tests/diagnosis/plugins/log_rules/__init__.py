"""Tests of hermes_doctor.diagnosis.plugins.log_rules."""
