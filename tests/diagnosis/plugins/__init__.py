"""Tests of hermes_doctor.diagnosis.plugins."""
