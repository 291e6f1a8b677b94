"""Tests of hermes_doctor.repair.steps."""
