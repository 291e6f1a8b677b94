"""Tests of hermes_doctor.steps."""
